"""What a schedule may do next: each move draws its choices and returns actions."""
