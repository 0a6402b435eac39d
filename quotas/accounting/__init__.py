"""What was used: the ledger of every admitted second, the budgets it is held to, and the usage that people see."""
