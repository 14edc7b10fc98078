;; Wants a table of 20,001 elements, of which it may have 20,000, before it does anything.
(table 20001 funcref)
