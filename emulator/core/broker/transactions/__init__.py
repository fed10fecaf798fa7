"""Coordinators of transactions: state machines over the partitions of ``__transaction_state`` that a broker leads."""
