package lookup

import "slices"

// whose says, of each record, whether it is somebody else's: another effect's, or a
// person said so. A person's word does not hold
//
// for the record that the effect itself was closed with;
//
// nor for one that fits the call, once the call was sent again because of that word and
// has another record too: then the first may have been ours after all, and money left
// twice. Alone it stays denied.
func (q *Question) whose(hits []Hit) (list []Judged) {
	var again []int // those that are candidates again, if they are not alone
	others := false // besides them
	for i, h := range hits {
		owner, foreign := q.Owned[h.Name()]
		denied := foreign && owner == ""
		if denied && h.Reference != "" && h.Reference == q.Reference {
			foreign = false
		}
		switch counts := !h.Possible && !h.Never; {
		case !counts:
		case !foreign:
			others = true
		case denied && q.Resent[h.Name()] && (h.Match || h.Ours):
			again = append(again, i)
			others = others || q.Reference != "" // which is not this one
		}
		if !foreign {
			owner = q.Disputed[h.Name()]
		}
		list = append(list, Judged{h, foreign, owner})
	}
	if others || len(again) > 1 {
		for i := range list {
			if slices.Contains(again, i) {
				list[i].Foreign = false
			}
		}
	}
	return list
}
