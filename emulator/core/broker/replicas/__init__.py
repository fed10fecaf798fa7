"""The parts that both kinds of broker are made of; see ``README.md`` in this folder for the map."""
