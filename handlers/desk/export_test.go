package desk

import "net/http"

// Change is a route that may change something.
type Change struct {
	Path, Action string
	Draft        bool // changes only what its own person has typed
}

// Changes are all of them.
func Changes() (list []Change) {
	for _, r := range routes {
		if r.method != http.MethodGet {
			list = append(list, Change{r.path, r.action, r.draft})
		}
	}
	return list
}
