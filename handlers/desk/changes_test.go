package desk_test

import (
	"bytes"
	"context"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"time"

	"quittance/reconcile/access"
	"quittance/reconcile/effects"
	"quittance/reconcile/payments"
)

// changes does each thing that a route can change, once and successfully. It is called
// in the order of the route table.
func (w *world) changes() map[string]func() answer {
	ada := w.signedIn("ada")
	fresh := 0
	effect := func() string {
		fresh++
		return w.interrupted(fmt.Sprint("run-change-", fresh), "send_payment", pay("Change", fmt.Sprint(fresh), "20.00", "USD"))
	}
	version := func(id string) string { return fmt.Sprint(w.effect(id).Version) }
	post := func(v *visitor, page, path string, form url.Values) answer {
		if form == nil {
			form = url.Values{}
		}
		form.Set("form", v.get(page).token(w.t, path))
		return v.send(path, form)
	}
	onEffect := func(name string, id string, form url.Values) answer {
		form.Set("version", version(id))
		if name == "lookup" { // its button belongs to the verdict form
			form.Set("form", ada.get("/effects/"+id).token(w.t, "/effects/"+id+"/review"))
			return ada.send("/effects/"+id+"/lookup", form)
		}
		return post(ada, "/effects/"+id, "/effects/"+id+"/"+name, form)
	}
	person := func(name string, form url.Values) func() answer {
		return func() answer { return post(ada, "/people", fmt.Sprintf("/people/%d/%s", w.vera.ID, name), form) }
	}
	set := func() string {
		id := effect()
		return post(ada, "/", "/bulk", url.Values{"what": {"chosen"}, "effect": {id + " " + version(id)}}).location()
	}
	replay := func() answer {
		id := w.delivered()
		return post(ada, "/deliveries/"+id, "/deliveries/"+id+"/replay", nil)
	}
	gap := func() {
		if err := w.engine.FindGap(context.Background(), "a test"); err != nil {
			w.t.Fatal(err)
		}
	}
	return map[string]func() answer{
		"/sign-in": func() answer {
			return w.visitor().send("/sign-in", url.Values{"email": {"petra@example.com"}, "password": {password}})
		},
		"/sign-out": func() answer { return post(w.signedIn("petra"), "/", "/sign-out", nil) },
		"/enter/:link": func() answer {
			link, err := w.access.Link(w.t.Context(), access.MadeBy{}, w.petra.ID, access.LinkSignIn)
			if err != nil {
				w.t.Fatal(err)
			}
			return w.visitor().send("/enter/"+link, nil)
		},
		"/deliveries/:delivery/replay": replay,
		"/effects/:id/draft": func() answer {
			id := effect()
			form := verdict("taken", "half")
			form.Set("form", ada.get("/effects/"+id).token(w.t, "/effects/"+id+"/review"))
			return ada.send("/effects/"+id+"/draft", form)
		},
		"/effects/:id/review": func() answer { return onEffect("review", effect(), verdict("taken", "whole")) },
		"/effects/:id/decision": func() answer {
			id := effect()
			_, form := ada.toConfirm(id, verdict("taken", "seen"))
			return ada.send("/effects/"+id+"/decision", form)
		},
		"/effects/:id/lookup": func() answer {
			id := w.interrupted("run-change-look", "wire", wire("CHANGE-1", 100))
			w.looked(id, 1)
			return onEffect("lookup", id, url.Values{})
		},
		"/tools/lookup": func() answer {
			form := url.Values{"tool": {"wire"}, "key": {"CHANGE-1"}, "form": {ada.get("/tools").token(w.t, "/tools/lookup#try")}}
			return ada.send("/tools/lookup", form)
		},
		"/effects/:id/undo": func() answer {
			id := effect()
			w.decide(w.petra, effects.Decide{EffectID: id, Verdict: effects.VerdictTaken})
			return onEffect("undo", id, url.Values{"note": {"wrong"}})
		},
		"/effects/:id/send-back": func() answer {
			id := w.interrupted("run-change-big", "send_payment", pay("Change", "big", "20000.00", "USD"))
			w.decide(w.petra, effects.Decide{EffectID: id, Verdict: effects.VerdictTaken})
			return onEffect("send-back", id, url.Values{"note": {"look again"}})
		},
		"/effects/:id/acknowledge": func() answer {
			id := w.contradicted("run-change-contra", pay("Change", "contra", "20.00", "USD"))
			return onEffect("acknowledge", id, url.Values{"note": {"both ours"}, "recovery": {"no"}})
		},
		"/effects/:id/files": func() answer {
			id := effect()
			var body bytes.Buffer
			m := multipart.NewWriter(&body)
			_ = m.WriteField("form", ada.get("/effects/"+id).token(w.t, "/effects/"+id+"/files"))
			part, _ := m.CreatePart(textproto.MIMEHeader{"Content-Disposition": {`form-data; name="file"; filename="a.pdf"`}, "Content-Type": {"application/pdf"}})
			_, _ = part.Write([]byte("%PDF-1.7\nx"))
			_ = m.Close()
			r := ada.request(http.MethodPost, "/effects/"+id+"/files", &body)
			r.Header.Set("Content-Type", m.FormDataContentType())
			return ada.do(r)
		},
		"/bulk": func() answer {
			id := effect()
			return post(ada, "/", "/bulk", url.Values{"what": {"chosen"}, "effect": {id + " " + version(id)}})
		},
		"/bulk/:set/order": func() answer {
			path := set()
			return post(ada, path, path+"/order", url.Values{"name": {"n"}, "verdict": {"stop"}, "note": {"seen"}})
		},
		"/bulk/:set/undo": func() answer {
			path := set()
			post(ada, path, path+"/order", url.Values{"name": {"n"}, "verdict": {"stop"}, "note": {"seen"}})
			return post(ada, path, path+"/undo", url.Values{"note": {"wrong"}})
		},
		"/refunds/:id/act": func() answer {
			m := w.unplaced()
			m, err := w.pay.GiveBack(w.t.Context(), payments.ByHand{By: access.MadeBy{Person: &access.Person{ID: w.petra.ID, Name: "Petra Lind"}}, Transfer: m.Transfer.ID, Note: "not ours"})
			if err != nil {
				w.t.Fatal(err)
			}
			return ada.step("/refunds/"+m.Refund.ID, url.Values{"do": {"hold"}}, "who is it?")
		},
		"/recoveries/:id/act": func() answer {
			w.contradicted("run-change-recovery", pay("Change", "recovery", "20.00", "USD"))
			var id string
			if err := w.db.Get(w.t.Context(), &id, `SELECT id::text FROM recoveries WHERE state = 'suspected' LIMIT 1`); err != nil {
				w.t.Fatal(err)
			}
			return ada.step("/recoveries/"+id, url.Values{"do": {"assign"}}, "")
		},
		"/transfers/:id/act": func() answer {
			return ada.step("/transfers/"+w.unplaced().Transfer.ID, url.Values{"do": {"give-back"}}, "not ours")
		},
		"/orders/:id/act": func() answer {
			path := "/orders/" + (&moneyWorld{world: w}).order("1000").OrderID
			return ada.step(path, url.Values{"do": {"revoke-receipt"}, "version": {ada.get(path).field(w.t, "version")}}, "sent to a stranger")
		},
		"/health/gap/acknowledge": func() answer {
			gap()
			return post(ada, "/health", "/health/gap/acknowledge", url.Values{"note": {"restored"}})
		},
		"/health/gap/end": func() answer { return post(ada, "/health", "/health/gap/end", url.Values{"note": {"looked"}}) },
		"/health/copy/adopt": func() answer {
			for _, place := range []string{"production", "drill"} {
				if err := w.engine.Arrive(context.Background(), place, false, true); err != nil {
					w.t.Fatal(err)
				}
			}
			return post(ada, "/health", "/health/copy/adopt", url.Values{"note": {"the other is gone"}})
		},
		"/health/file/acknowledge": func() answer {
			id := w.changedFile("/var/agent/effects.jsonl")
			return post(ada, "/health", "/health/file/acknowledge", url.Values{"file": {fmt.Sprint(id)}, "note": {"restored by hand"}})
		},
		"/people": func() answer {
			return post(ada, "/people", "/people", url.Values{"name": {"Nils"}, "email": {"nils@example.com"}})
		},
		"/people/:person/roles":   person("roles", url.Values{"was": {"viewer"}, "role": {"viewer", "operator"}}),
		"/people/:person/link":    person("link", nil),
		"/people/:person/disable": person("disable", nil),
		"/people/:person/enable":  person("enable", nil),
		"/you/tokens":             func() answer { return post(ada, "/you", "/you/tokens", url.Values{"name": {"mine"}, "days": {"30"}}) },
		"/you/tokens/:token/revoke": func() answer {
			page := ada.get("/you").body
			i := strings.Index(page, "/you/tokens/")
			for !strings.HasPrefix(page[i:], "/you/tokens/") || !strings.Contains(page[i:i+40], "/revoke") {
				i += 1 + strings.Index(page[i+1:], "/you/tokens/")
			}
			path := page[i : i+strings.IndexByte(page[i:], '"')]
			return post(ada, "/you", path, nil)
		},
		"/you/zone": func() answer { return post(ada, "/you", "/you/zone", url.Values{"zone": {"Europe/Lisbon"}}) },
	}
}

// unplaced is money that came in, of nobody's order.
func (w *world) unplaced() *payments.Moved {
	w.t.Helper()
	m, err := w.pay.Post(w.t.Context(), payments.Incoming{
		Account: w.account, Network: "bank:main", Tx: fmt.Sprint("in-", time.Now().UnixNano()), Asset: "usd", From: "somebody", To: "us", Amount: "100", Final: true,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return m
}

// delivered is the id of a delivery that went out for some run.
func (w *world) delivered() (id string) {
	w.t.Helper()
	w.interrupted("run-delivered", "send_payment", pay("Change", "delivered", "20.00", "USD"))
	w.exec(`INSERT INTO deliveries (id, endpoint, run_id, ready_at, body, made_at, state, ended_at)
		SELECT gen_random_uuid(), 'ops', id, now(), '{}', now(), 'delivered', now() FROM runs WHERE run_id = 'run-delivered'`)
	if err := w.db.Get(w.t.Context(), &id, `SELECT d.id FROM deliveries d JOIN runs r ON r.id = d.run_id WHERE r.run_id = 'run-delivered'`); err != nil {
		w.t.Fatal(err)
	}
	return id
}
