"""Events, operations and final logs of a run as tables: frequent ones as columns, the others one by one."""
