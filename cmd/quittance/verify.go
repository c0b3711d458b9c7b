package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	"quittance/ledger"
	"quittance/ledger/books"
	store "quittance/ledger/seal"
	"quittance/reconcile/seal"
)

type verifyCmd struct {
	dataFlag
	anchorFlag
	Database string `help:"Another database than the one DATABASE_URL names, such as a restored copy: a postgres:// URL without a password (that is PGPASSWORD's)." placeholder:"URL"`
	LookOnly bool   `help:"Change nothing: what is found opens no log gap."`
	JSON     bool   `help:"Print a JSON object."`
}

// Run has everything recomputed and says what is wrong, the first bad row first. What is
// wrong and was not known opens a log gap, so that no server builds upon it. It fails
// with its own code when anything is wrong, known or not.
func (c *verifyCmd) Run(ctx context.Context, env environment, out output) (err error) {
	if c.Database != "" {
		u, err := url.Parse(c.Database)
		if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
			return usagef("--database is not of the form postgres://user@host/name")
		}
		if _, set := u.User.Password(); set || u.Query().Has("password") {
			return usagef("--database holds a password, which every user of this machine could read: put it into PGPASSWORD")
		}
		env.DatabaseURL = secret(c.Database)
	}
	// Without a place there is no telling which anchor in the data folder is this database's.
	if env.DatabaseURL != "" && env.Place == "" && c.Anchor == "" {
		return usagef("QUITTANCE_ENVIRONMENT is not set: it names the anchor to compare with; or name it with --anchor, which may be off")
	}
	anchor, err := c.anchor(env, c.dataFlag)
	if err != nil {
		return err
	}
	db, done, err := openDatabase(ctx, env, c.dataFlag)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	report, err := seal.Verify(ctx, db, !c.LookOnly, append(seal.Checks(db, anchor), moneyCheck(db))...)
	if err != nil {
		return err
	}
	if c.JSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		if err := e.Encode(report); err != nil {
			return fmt.Errorf("couldn't print the report: %w", err)
		}
	} else {
		printReport(out, report)
	}
	if !report.OK {
		return &uncleanError{"the record is damaged, or the money does not add up"}
	}
	return nil
}

// moneyCheck holds what was received to where it stands.
func moneyCheck(db *ledger.DB) seal.Check {
	return seal.Check{
		Name: "money", About: "what was received stands somewhere, in the tables and in the double entries", Beside: true,
		Run: func(ctx context.Context, found func(store.Damage) error) (int64, error) {
			lines, err := books.Equation(ctx, db)
			if err != nil {
				return 0, err
			}
			wrong, err := books.Check(ctx, db)
			for _, what := range wrong {
				err = errors.Join(err, found(store.Damage{What: what}))
			}
			return int64(len(lines)), err
		},
	}
}

func printReport(out output, r seal.Report) {
	for _, c := range r.Checks {
		word := "ok"
		if !c.OK {
			word = "DAMAGED"
		}
		fmt.Fprintf(out, "%-9s %-8s %s (%d looked at)\n", c.Name, word, c.About, c.Looked)
		for _, f := range c.Findings {
			known := ""
			if f.Known {
				known = " (known)"
			}
			fmt.Fprintf(out, "          %s%s\n", f.What, known)
		}
		if more := c.Found - int64(len(c.Findings)); more > 0 {
			fmt.Fprintf(out, "          and %d more\n", more)
		}
	}
	if r.Block == 0 {
		fmt.Fprintln(out, "Nothing is sealed.")
		return
	}
	fmt.Fprintf(out, "Sealed to block %d, %s.\n", r.Block, r.Digest)
}
