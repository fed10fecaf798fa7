"""A whole run of a simulated cluster: played, judged, and written as a run directory."""
