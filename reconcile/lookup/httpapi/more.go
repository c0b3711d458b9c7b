package httpapi

import (
	"strings"

	"quittance/reconcile/canon"
)

// moreNames are members by which APIs say that there are further pages, without their
// marks: has_more, hasMore and has-more are one.
var moreNames = map[string]bool{
	"hasmore": true, "more": true, "next": true, "nexturl": true, "nextlink": true, "nextpage": true, "nextcursor": true,
	"nextpagetoken": true, "nexttoken": true, "hasnext": true, "hasnextpage": true, "@odata.nextlink": true, "continuationtoken": true,
}

// moreIn are members in which they stand, besides the answer itself.
var moreIn = map[string]bool{"links": true, "link": true, "meta": true, "metadata": true, "paging": true, "pagination": true,
	"page": true, "pageinfo": true, "responsemetadata": true}

// speaksOfMore says whether an answer tells of further pages.
func speaksOfMore(body *canon.Value) bool {
	for name, v := range body.Members() {
		plain := strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(name))
		if moreNames[plain] && says(v) || moreIn[plain] && speaksOfMore(v) {
			return true
		}
	}
	return false
}

// says is false for null, false, "", 0 and what has nothing in it.
func says(v *canon.Value) bool {
	switch v.Kind() {
	case canon.Bool:
		b, _ := v.Bool()
		return b
	case canon.String:
		s, _ := v.Text()
		return s != ""
	case canon.Number:
		n, _ := v.Number()
		return n != "0"
	}
	return v.Len() > 0
}
