// Pages of Django's admin: the focus goes to the first field with an error.

document.querySelector(":is(.errors, td:has(> .errorlist)) :is(input, select, textarea):not([type=hidden])")?.focus();
