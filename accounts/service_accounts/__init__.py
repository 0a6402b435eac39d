"""Service accounts: accounts of a tenant for automation, which have tokens alone, and an owner who answers for them."""
