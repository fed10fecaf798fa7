"""Controllers' metadata quorum in virtual time."""
