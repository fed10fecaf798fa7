"""Performs the actions of ``laststand.emulator.plan`` on a simulated cluster."""
