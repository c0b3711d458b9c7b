package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"quittance/reconcile/access"
)

type peopleCmd struct {
	Add     peopleAddCmd     `cmd:"" help:"Add somebody who may read or decide."`
	List    peopleListCmd    `cmd:"" help:"List everybody."`
	Disable peopleDisableCmd `cmd:"" help:"End somebody's access, tokens included."`
}

type peopleAddCmd struct {
	dataFlag
	Name  string   `arg:"" help:"Their name, as others will see it."`
	Email string   `help:"Their e-mail address." placeholder:"ADDRESS"`
	Role  []string `help:"viewer, operator, approver, finance, admin or auditor; several, separated by commas." default:"viewer" placeholder:"ROLE"`
}

func (c *peopleAddCmd) Run(ctx context.Context, env environment, out output) error {
	return withAccess(ctx, env, c.dataFlag, func(a *access.Service) error {
		id, err := a.AddPerson(ctx, c.Name, c.Email, c.Role)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "%s is person %d. Make them a token with: quittance token new --person %d%s\n", c.Name, id, id, c.again(env))
		return err
	})
}

type peopleListCmd struct{ dataFlag }

func (c *peopleListCmd) Run(ctx context.Context, env environment, out output) error {
	return withAccess(ctx, env, c.dataFlag, func(a *access.Service) error {
		list, err := a.People(ctx)
		if err != nil {
			return err
		}
		w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
		fmt.Fprintln(w, "ID\tNAME\tE-MAIL\tROLES\tSINCE\tDISABLED")
		for _, p := range list {
			fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\n", p.ID, p.Name, p.Email, strings.Join(p.Roles, ","), day(p.CreatedAt), day(p.DisabledAt))
		}
		return w.Flush()
	})
}

type peopleDisableCmd struct {
	dataFlag
	ID int64 `arg:"" help:"Their number in the list."`
}

func (c *peopleDisableCmd) Run(ctx context.Context, env environment, out output) error {
	return withAccess(ctx, env, c.dataFlag, func(a *access.Service) error {
		ok, err := a.DisablePerson(ctx, c.ID)
		if err == nil && !ok {
			err = fmt.Errorf("there is no active person with the number %d", c.ID)
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "Person %d is disabled.\n", c.ID)
		return err
	})
}
