package redact

// findCards returns the places of payment card numbers in a piece of s: 13 to 19 digits,
// alone or in groups with one space or dash between them, that an issuer could have given
// out and whose check digit is right. Digits that are part of a longer number or of a
// word, such as a hash, are none.
func findCards(s string, piece span) (cards []span) {
	s = s[:piece.end]
	for i := piece.start; i < len(s); {
		if !isDigit(s[i]) {
			i++
			continue
		}
		start := i
		for i < len(s) && (isDigit(s[i]) || isSeparator(s[i]) && i+1 < len(s) && isDigit(s[i+1])) {
			i++
		}
		if i-start >= minCard {
			cards = append(cards, cardsInRun(s[piece.start:], start-piece.start, i-piece.start, piece.start)...)
		}
	}
	return cards
}

const minCard, maxCard = 13, 19

// cardsInRun tries the sequences of whole groups in s[from:to]; offset is added to what
// it returns.
func cardsInRun(s string, from, to, offset int) (cards []span) {
	for a := from; a < to; a++ {
		if !isDigit(s[a]) || a > from && isDigit(s[a-1]) || a > 0 && partOfWord(s[a-1]) {
			continue
		}
		if end := cardAt(s[a:to], s[to:]); end > 0 {
			cards = append(cards, span{offset + a, offset + a + end})
			a += end
		}
	}
	return cards
}

// cardAt returns the length of the card number that the groups begin with, or 0; after is
// the text behind the last group.
func cardAt(groups, after string) int {
	var digits [maxCard]byte
	n := 0
	for i := 0; i < len(groups); i++ {
		if !isDigit(groups[i]) {
			continue
		}
		if n == maxCard {
			return 0
		}
		digits[n] = groups[i]
		n++
		switch {
		case i+1 < len(groups) && isDigit(groups[i+1]):
		case i+1 == len(groups) && after != "" && (partOfWord(after[0]) && after[0] != '.' || decimals(after)):
		case isCard(string(digits[:n])):
			return i + 1
		}
	}
	return 0
}

func isDigit(c byte) bool     { return '0' <= c && c <= '9' }
func isSeparator(c byte) bool { return c == ' ' || c == '-' }

func partOfWord(c byte) bool {
	return c == '_' || c == '.' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// decimals says whether s goes on with a decimal point and a digit.
func decimals(s string) bool { return len(s) > 1 && s[0] == '.' && isDigit(s[1]) }

func isCard(digits string) bool {
	return len(digits) >= minCard && len(digits) <= maxCard && issued(digits) && luhn(digits)
}

func luhn(digits string) bool {
	sum := 0
	for i := range len(digits) {
		d := int(digits[len(digits)-1-i] - '0')
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}

// issued knows the first digits and lengths that the large schemes use (ISO/IEC 7812).
func issued(digits string) bool {
	n := len(digits)
	first4 := 0
	for i := range 4 {
		first4 = first4*10 + int(digits[i]-'0')
	}
	first2, first3 := first4/100, first4/10
	within := func(x, from, to int) bool { return from <= x && x <= to }
	switch {
	case first4/1000 == 4: // Visa
		return n == 13 || n == 16 || n == 19
	case within(first2, 51, 55), within(first4, 2221, 2720): // Mastercard
		return n == 16
	case first2 == 34, first2 == 37: // American Express
		return n == 15
	case first4 == 6011, first2 == 65, within(first3, 644, 649), first2 == 62: // Discover, UnionPay
		return n >= 16
	case within(first4, 3528, 3589): // JCB
		return n >= 16
	case within(first3, 300, 305), first4 == 3095, first2 == 36, first2 == 38, first2 == 39: // Diners Club
		return n >= 14
	case first4 == 5018, first4 == 5020, first4 == 5038, first4 == 6304, first4 == 6759, within(first4, 6761, 6763): // Maestro
		return true
	}
	return false
}
