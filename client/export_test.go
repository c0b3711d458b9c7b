package client

import "net/http/httptest"

// StartFake lends the fake to the example, which is written as its readers will.
func StartFake() *httptest.Server { return startFake().Server }
