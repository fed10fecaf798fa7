"""Code that ``make proto`` generates from ``proto/``; never edited."""
