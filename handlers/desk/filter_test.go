package desk

import "testing"

func TestACommaIsNoDecimalPointAndNoNothing(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"1,000": "1000", "12,345,678.90": "12345678.90", "1000.5": "1000.5",
		"1,5": "1,5", "1,50": "1,50", "1000,00": "1000,00", "1,00,000": "1,00,000", "1.000,50": "1.000,50", ",5": ",5", "1,000,": "1,000,", "-1,000": "-1,000",
	} {
		if got := ungrouped(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
