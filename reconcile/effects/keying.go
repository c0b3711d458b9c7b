package effects

import (
	"context"
	"fmt"

	"quittance/ledger"
	"quittance/ledger/observed"
	"quittance/ledger/runs"
	"quittance/ledger/templates"
	"quittance/reconcile/canon"
	"quittance/reconcile/policy"
)

// keying is the business_key template of every tool, as the database says: servers that
// hold different policies must look for an overlap under the same claims. Immutable.
type keying struct {
	number   int64 // rises with each change of what begins are checked under
	tools    map[string]template
	observed map[string]bool // tools of which calls were observed: begins look for those
}

// template makes a tool's claims. The zero value claims the call itself.
type template struct {
	now     *policy.Tool
	was     *policy.Tool // while begins are checked under the earlier one too
	changes bool         // they are
}

// rekeying tells that a begin of the tool has more to check than one claim: it is made
// with two templates, or calls were observed.
func (k *keying) rekeying(tool string) bool { return k.tools[tool].changes || k.observed[tool] }

// claim is what a call claims under its tool's template. With missing fields it is the
// call itself. The error is that of [policy.Tool.BusinessKey].
func (k *keying) claim(tool string, account int64, args *canon.Value, digest canon.Key) (c claim, missing []string, err error) {
	return claimUnder(k.tools[tool].now, tool, account, args, digest)
}

// earlier is what a call claims under the template that its tool had before; false when
// there is none to check. What that template cannot name claims the call itself.
func (k *keying) earlier(tool string, account int64, args *canon.Value, digest canon.Key) (claim, bool) {
	t := k.tools[tool]
	if !t.changes {
		return claim{}, false
	}
	c, _, err := claimUnder(t.was, tool, account, args, digest)
	if err != nil {
		c, _, _ = claimUnder(nil, tool, account, args, digest)
	}
	return c, true
}

func claimUnder(t *policy.Tool, tool string, account int64, args *canon.Value, digest canon.Key) (claim, []string, error) {
	var missing []string
	if t != nil {
		key, without, err := t.BusinessKey(args)
		switch {
		case err != nil:
			return claim{}, nil, err
		case len(without) == 0:
			d := canon.ClaimKey(accountText(account), tool, key)
			return claim{digest: d[:], key: key}, nil, nil
		}
		missing = without
	}
	d := canon.CallClaim(accountText(account), tool, digest)
	return claim{digest: d[:], call: true}, missing, nil
}

// source is the text of the tool's template.
func (k *keying) source(tool string) string {
	if t := k.tools[tool].now; t != nil {
		return t.BusinessKeyTemplate()
	}
	return ""
}

// again is what an observed call claims under its tool's template. Where no business key
// can be made of it, it is as with a missing field.
func (k *keying) again(tool string, x observed.Keyed) (claim, error) {
	args, err := canon.ParseObject([]byte(x.Arguments))
	if err != nil {
		return claim{}, fmt.Errorf("couldn't read the stored arguments of call %s: %w", x.ID, err)
	}
	c, _, err := k.claim(tool, x.Account, args, canon.Key(x.CallDigest))
	if err != nil {
		c, _, err = claimUnder(nil, tool, x.Account, args, canon.Key(x.CallDigest))
	}
	return c, err
}

// parseTemplate reads a stored template; nil for none.
func parseTemplate(tool, source string) (*policy.Tool, error) {
	if source == "" {
		return nil, nil
	}
	t, err := policy.ParseBusinessKey(source)
	if err != nil {
		return nil, fmt.Errorf("couldn't use the stored template of tool %q: %w", tool, err)
	}
	return t, nil
}

// keying is what this transaction's begins are checked under. It was read after the
// runs were locked: [Engine.beginsOver] counts on that.
func (w *work) keying(ctx context.Context) (*keying, error) {
	if k := w.e.keying.Load(); k.number == w.sys.Keying {
		return k, nil
	}
	number, list, err := templates.InForce(ctx, w.tx)
	if err != nil {
		return nil, err
	}
	// Read after the number: a tool that is observed for the first time raises it.
	seen, err := observed.Tools(ctx, w.tx)
	if err != nil {
		return nil, err
	}
	k := &keying{number: number, tools: map[string]template{}, observed: map[string]bool{}}
	for _, tool := range seen {
		k.observed[tool] = true
	}
	for _, c := range list {
		var t template
		if t.now, err = parseTemplate(c.Tool, c.Template); err != nil {
			return nil, err
		}
		if t.changes = c.RekeyedAt.IsZero(); t.changes {
			if t.was, err = parseTemplate(c.Tool, c.Earlier); err != nil {
				return nil, err
			}
		}
		k.tools[c.Tool] = t
	}
	w.e.keying.Store(k)
	return k, nil
}

// changeTemplates compares the policy's templates with those in force, and begins what
// has changed. One change of a tool at a time: an effect has two claims at most, and a
// further change waits until the one before it is settled.
func (e *Engine) changeTemplates(ctx context.Context, tx *ledger.Tx, p *policy.Policy) error {
	if changed, err := changedTemplates(ctx, tx, p); len(changed) == 0 || err != nil {
		return err
	}
	if err := templates.Lock(ctx, tx); err != nil {
		return err
	}
	changed, err := changedTemplates(ctx, tx, p)
	if err != nil {
		return err
	}
	never, err := runs.Never(ctx, tx)
	if err != nil {
		return err
	}
	announce := false
	for _, c := range changed {
		if c.forget != 0 {
			if err := templates.Forget(ctx, tx, c.forget); err != nil {
				return err
			}
		}
		if c.Template == c.Earlier {
			continue
		}
		if err := templates.Begin(ctx, tx, c.Change, !c.waits, never); err != nil {
			return err
		}
		announce = announce || !c.waits
		if !never {
			e.log.Info("a business_key changed: stored effects are re-keyed, and begins checked under both", "tool", c.Tool, "waits", c.waits)
		}
	}
	if !announce {
		return nil
	}
	return templates.Announce(ctx, tx)
}

// templateChange is one that a policy asks for.
type templateChange struct {
	templates.Change
	forget int64 // a waiting change that it takes the place of
	waits  bool
}

func changedTemplates(ctx context.Context, r ledger.Reader, p *policy.Policy) (list []templateChange, err error) {
	_, inForce, err := templates.InForce(ctx, r)
	if err != nil {
		return nil, err
	}
	waiting, err := templates.Waiting(ctx, r)
	if err != nil {
		return nil, err
	}
	known := map[string]templateChange{}
	for _, t := range p.Tools() {
		known[t.Name] = templateChange{Change: templates.Change{Tool: t.Name}}
	}
	wanted := map[string]string{} // what will be in force when nothing else is asked for
	for _, c := range inForce {
		known[c.Tool] = templateChange{Change: templates.Change{Tool: c.Tool, Earlier: c.Template}, waits: c.SettledAt.IsZero()}
		wanted[c.Tool] = c.Template
	}
	for _, c := range waiting {
		k := known[c.Tool]
		k.forget = c.ID
		known[c.Tool], wanted[c.Tool] = k, c.Template
	}
	for name, c := range known {
		c.Template = p.Tool(name).BusinessKeyTemplate()
		if c.Template != wanted[name] {
			list = append(list, c)
		}
	}
	return list, nil
}
