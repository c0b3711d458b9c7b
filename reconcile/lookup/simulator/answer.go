package simulator

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

func (s *Server) order(w http.ResponseWriter, r *http.Request) {
	var p Payment
	if s.world(r) != "live" || json.NewDecoder(io.LimitReader(r.Body, 64<<10)).Decode(&p) != nil {
		answer(w, http.StatusForbidden, map[string]string{"code": "refused"})
		return
	}
	s.mu.Lock()
	b := s.behaviour
	p.Key, p.Status, p.LandedAt = r.Header.Get("Idempotency-Key"), "booked", s.now().Add(b.LandsAfter)
	p.Amount -= b.Short
	if b.Processing {
		p.Status = "processing"
	}
	copies := 1
	if b.Twice {
		copies = 2
	}
	for range copies {
		p.ID = fmt.Sprintf("tr_%d", len(s.ledger))
		s.ledger = append(s.ledger, p)
	}
	s.mu.Unlock()
	if b.LoseAnswer {
		panic(http.ErrAbortHandler) // the connection closes without an answer
	}
	answer(w, http.StatusCreated, p)
}

// world is what the credentials open; "" for none.
func (s *Server) world(r *http.Request) string {
	switch r.Header.Get("Authorization") {
	case "Bearer " + LiveToken:
		return "live"
	case "Bearer " + SandboxToken:
		return "sandbox"
	}
	return ""
}

// List answers a question.
type List struct {
	World   string    `json:"world"`
	Data    []Payment `json:"data"`
	NextURL *string   `json:"next_url"`
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	reference := r.URL.Query().Get("reference")
	if !s.enter(reference) {
		w.Header().Set("Retry-After", "30")
		answer(w, http.StatusTooManyRequests, map[string]string{"code": "slow_down"})
		return
	}
	defer s.leave(reference)
	s.mu.Lock()
	b := s.behaviour
	s.mu.Unlock()
	if b.Takes > 0 {
		select {
		case <-time.After(b.Takes):
		case <-r.Context().Done():
		}
	}
	world := s.world(r)
	switch {
	case b.Fault != None && reference != Canary:
		fail(w, r, b.Fault)
		return
	case world == "":
		answer(w, http.StatusUnauthorized, map[string]string{"code": "no_token"})
		return
	}
	page, _ := strconv.Atoi(r.URL.Query().Get("page"))
	page = max(page, 1)
	if s.failsPage(page) {
		answer(w, http.StatusInternalServerError, map[string]string{"code": "internal"})
		return
	}
	all := s.shown(world, reference)
	out := List{World: world, Data: []Payment{}}
	from := min((page-1)*pageSize, len(all))
	to := min(from+pageSize, len(all))
	out.Data = append(out.Data, all[from:to]...)
	if to < len(all) {
		query := r.URL.Query()
		query.Set("page", strconv.Itoa(page+1))
		next := "/v1/payments?" + query.Encode()
		out.NextURL = &next
	}
	answer(w, http.StatusOK, out)
}

// shown is what a search shows: a reference in which the asked one stands is a hit too, as
// in many a search; "*" shows everything.
func (s *Server) shown(world, reference string) (list []Payment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if world != "live" {
		return nil
	}
	for _, p := range s.ledger {
		if (reference == "*" || strings.Contains(p.Reference, reference)) && !p.LandedAt.Add(s.behaviour.Lag).After(s.now()) {
			list = append(list, p)
		}
	}
	return list
}

func (s *Server) failsPage(page int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if page != s.behaviour.FailPage {
		return false
	}
	s.behaviour.FailPage = 0
	return true
}

// enter counts a question in, unless there were too many in this second.
func (s *Server) enter(reference string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now() // limits are about real time, whatever the ledger's clock says
	recent := s.window[:0]
	for _, at := range s.window {
		if now.Sub(at) < time.Second {
			recent = append(recent, at)
		}
	}
	s.window = recent
	if most := s.behaviour.PerSecond; most > 0 && len(s.window) >= most {
		s.stats.Throttled++
		return false
	}
	s.window = append(s.window, now)
	s.stats.Asked[reference]++
	s.asking[reference]++
	s.stats.Doubled = s.stats.Doubled || s.asking[reference] > 1 && reference != Canary
	total := 0
	for _, n := range s.asking {
		total += n
	}
	s.stats.AtOnce = max(s.stats.AtOnce, total)
	return true
}

func (s *Server) leave(reference string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asking[reference]--; s.asking[reference] == 0 {
		delete(s.asking, reference)
	}
}

// Private is where a redirect leads.
const Private = "http://10.0.0.1/v1/payments"

func fail(w http.ResponseWriter, r *http.Request, f Fault) {
	switch f {
	case Unauthorized:
		answer(w, http.StatusUnauthorized, map[string]string{"code": "order_unknown"})
	case Forbidden:
		answer(w, http.StatusForbidden, map[string]string{"code": "order_unknown"})
	case NotFoundHTML:
		page(w, http.StatusNotFound, "<html><h1>404 order_unknown</h1></html>")
	case NotFoundJSON:
		answer(w, http.StatusNotFound, map[string]string{"code": "order_unknown"})
	case Gone:
		answer(w, http.StatusGone, map[string]string{"code": "gone"})
	case TooMany:
		w.Header().Set("Retry-After", "30")
		answer(w, http.StatusTooManyRequests, map[string]string{"code": "order_unknown"})
	case BadGateway:
		page(w, http.StatusBadGateway, "<html><body><h1>502</h1><script>x()</script>"+strings.Repeat("<!-- filler -->", 3<<20/15)+"</body></html>")
	case SlowLoris:
		trickle(w, r)
	case Redirect:
		http.Redirect(w, r, Private, http.StatusFound)
	case Huge:
		endless(w, r)
	case Truncated:
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"world":"live","next_url":null,"data":[`)
	case NotJSON:
		page(w, http.StatusOK, "<html><form>Please sign in</form></html>")
	case WrongShape:
		answer(w, http.StatusOK, map[string]any{"world": "live", "next_url": nil, "result": "ok"})
	default:
		panic(http.ErrAbortHandler)
	}
}

// trickle sends a valid answer so slowly that it never ends.
func trickle(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	for {
		if _, err := io.WriteString(w, " "); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-time.After(50 * time.Millisecond):
		case <-r.Context().Done():
			return
		}
	}
}

// endless sends a gigabyte, or as much as is read.
func endless(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"world":"live","next_url":null,"data":[],"filler":"`)
	block := strings.Repeat("x", 1<<20)
	for range 1 << 10 {
		if _, err := io.WriteString(w, block); err != nil {
			return
		}
	}
	_, _ = io.WriteString(w, `"}`)
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func page(w http.ResponseWriter, status int, html string) {
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, html)
}
