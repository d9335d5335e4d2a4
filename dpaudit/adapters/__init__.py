"""Any target as a `Mechanism`: a callable here, a process, a program, several as one."""
