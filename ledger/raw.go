package ledger

import "database/sql"

// Raw gives the transaction to a library that insists on its own kind (River).
func (t *Tx) Raw() *sql.Tx { return t.x.Tx }
