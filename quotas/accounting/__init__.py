"""Usage accounting: the ledger of every admitted second, budgets, and the usage that people see."""
