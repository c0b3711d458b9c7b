package api

import (
	"strings"
	"testing"

	"quittance/client"
)

// TestEveryRouteAsksForItsCaller goes over the whole product of routes and tokens. A
// caller that may pass gets past the door, which shows as any other status.
func TestEveryRouteAsksForItsCaller(t *testing.T) {
	t.Parallel()
	may := map[caller]map[string]bool{
		agent:         {"agent": true},
		reader:        {"viewer": true, "operator": true, "admin": true},
		decider:       {"operator": true, "admin": true},
		agentOrReader: {"agent": true, "viewer": true, "operator": true, "admin": true},
		administrator: {"admin": true},
		anyone:        {"agent": true, "viewer": true, "operator": true, "admin": true, "": true, "stranger": true},
	}
	url := serve(t, &stub{})
	for _, r := range routes {
		path := strings.NewReplacer(":run_id", "r1", ":effect_id", "e1", ":turn", "1").Replace(r.path)
		for _, token := range []string{"", "stranger", "agent", "viewer", "operator", "admin"} {
			got := call(t, token, r.method, url+path, "")
			want := 403
			if token == "" || token == "stranger" {
				want = 401
			}
			if may[r.who][token] {
				if got.status == 401 || got.status == 403 {
					t.Errorf("%s %s as %q: %d", r.method, r.path, token, got.status)
				}
				continue
			}
			if got.status != want {
				t.Errorf("%s %s as %q: %d, want %d", r.method, r.path, token, got.status, want)
			}
			var p client.Problem
			got.into(t, &p)
			if want == 401 && (p.Code != client.CodeUnauthorized || got.header.Get("WWW-Authenticate") != "Bearer") {
				t.Errorf("%s %s: %+v", r.method, r.path, p)
			}
			if strings.Contains(got.body, "stranger") {
				t.Errorf("%s %s repeats the token", r.method, r.path)
			}
		}
	}
}

func TestTokenThatCannotBeCheckedIsNotRefused(t *testing.T) {
	t.Parallel()
	got := call(t, "broken", "GET", serve(t, &stub{})+"/v1/queue", "")
	if got.status != 503 {
		t.Errorf("got %d: an agent would throw its token away", got.status)
	}
}
