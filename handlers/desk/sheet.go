package desk

import (
	"net/http"
	"unicode/utf8"

	"quittance/views"
	"quittance/web"
)

// How many characters a row may have side by side before a usual window cuts its last
// columns off.
const (
	wholeWidth = 92
	besideActs = 48 // where what can be done takes a third of the window
)

// stacked lays a table out in blocks where its longest texts and amounts leave no room for
// columns.
func stacked(t *views.Table, room int) *views.Table {
	sum := 0
	for i := range t.Head {
		widest := width(t.Head[i].Text)
		for _, row := range t.Rows {
			n := max(width(row[i].Text), utf8.RuneCountInString(row[i].Time.Text))
			if m := row[i].Money; m != nil {
				n += len(m.Value) + 1 + len(m.Code)
			}
			widest = max(widest, n)
		}
		sum += widest
	}
	t.Stacked = sum > room
	return t
}

// showSheet shows one thing of finance's.
func showSheet(r *request, s views.MoneySheet) error {
	room := wholeWidth
	if len(s.Acts) > 0 {
		room = besideActs
	}
	for i := range s.Tables {
		stacked(&s.Tables[i], room)
	}
	return web.Render(r.Context, http.StatusOK, views.MoneySheetPage(s))
}

func width(t views.Text) (n int) {
	for _, p := range t {
		n += utf8.RuneCountInString(p.Text)
	}
	return n
}
