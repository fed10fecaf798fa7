"""The checks, and what they share: premises, the guarantee, the arithmetic of high watermarks, the replay of logs."""
