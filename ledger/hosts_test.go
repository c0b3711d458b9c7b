package ledger

import "testing"

func TestManyHosts(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"postgres://a:6001,b:6002/quittance?target_session_attrs=read-write": "postgres:///quittance?host=a%2Cb&port=6001%2C6002&target_session_attrs=read-write",
		"postgres://me:p%40w@a,[::1]:6002/q":                                 "postgres://me:p%40w@/q?host=a%2C%3A%3A1&port=5432%2C6002",
		"postgres://a,b":                                                     "postgres:?host=a%2Cb&port=5432%2C5432",
		"postgres://me:pw@a:5433/q":                                          "postgres://me:pw@a:5433/q",
		"postgres:///q?host=a,b&port=1,2":                                    "postgres:///q?host=a,b&port=1,2",
		"postgres://me:a,b@a/q":                                              "postgres://me:a,b@a/q",
		"host=a,b port=1,2 dbname=q":                                         "host=a,b port=1,2 dbname=q",
		"postgres://a/q?application_name=,":                                  "postgres://a/q?application_name=,",
	} {
		if got := manyHosts(given); got != want {
			t.Errorf("%s became %s, want %s", given, got, want)
		}
	}
}
