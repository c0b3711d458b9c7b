package evm_test

import (
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"quittance/internal/chain"
	"quittance/reconcile/evm"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// The constants that everybody knows.
func TestKnownHashes(t *testing.T) {
	t.Parallel()
	for signature, want := range map[string]string{
		"AuthorizationUsed(address,bytes32)":     "0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5",
		"AuthorizationCanceled(address,bytes32)": "0x1cdd46ff242716cdaa72d159d339a485b3438398348d68f09d7c8c0a59353d81",
		"Transfer(address,address,uint256)":      "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef",
		"":                                       "0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470",
		"TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)": "0x7c7c6cdb67a18743f49ec6fa9b35f50d52ed05cbed4cc592e13b44501c1a2267",
	} {
		if got := evm.Keccak([]byte(signature)).String(); got != want {
			t.Errorf("%q: %s", signature, got)
		}
	}
	if got := evm.CallData("authorizationState(address,bytes32)", evm.Address{1}, evm.Hash{2}); len(got) != 68 || [4]byte(got) != [4]byte{0xe9, 0x4a, 0x01, 0x02} {
		t.Errorf("%x", got)
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	// The examples of EIP-55.
	for _, good := range []string{"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
		"0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB", "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb"} {
		for _, text := range []string{good, strings.ToLower(good), "0x" + strings.ToUpper(good[2:])} {
			if a, err := evm.ParseAddress(text); err != nil || a.String() != good {
				t.Errorf("%s: %s (%v)", text, a, err)
			}
		}
	}
	for text, want := range map[string]error{
		"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD": evm.ErrChecksum, // the last letter
		"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAe":  evm.ErrAddress,
		"5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed":   evm.ErrAddress,
		"0X5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed": evm.ErrAddress,
		"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeg": evm.ErrAddress,
		"0x": evm.ErrAddress,
		"":   evm.ErrAddress,
	} {
		if _, err := evm.ParseAddress(text); !errors.Is(err, want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestAtomicAmounts(t *testing.T) {
	t.Parallel()
	largest := "115792089237316195423570985008687907853269984665640564039457584007913129639935"
	for _, good := range []string{"0", "1", "12500000", "9007199254740993", largest} {
		if n, err := evm.ParseAtomic(good); err != nil || n.String() != good {
			t.Errorf("%s: %v (%v)", good, n, err)
		}
	}
	for _, bad := range []string{"", "-1", "+1", "1.0", "1e6", "01", "0x10", " 1", "1 ", "１２", "1_000", largest[:77] + "6", largest + "0"} {
		if n, err := evm.ParseAtomic(bad); !errors.Is(err, evm.ErrNumber) {
			t.Errorf("%q: %v (%v)", bad, n, err)
		}
	}
}

// The real contract says who signed, what it takes and what it refuses; we say the same
// without it.
func TestWeRecoverWhomTheContractRecovers(t *testing.T) {
	t.Parallel()
	c := chain.Start(t)
	token := c.Deploy(chain.Dollar)
	payer, shop := chain.NewWallet("payer"), c.Account(3)
	c.Mint(token, payer.Address, 1_000_000_000)
	domain := c.DollarDomain(token)
	if got := c.Read(token, evm.CallData("DOMAIN_SEPARATOR()")); got != domain.Separator().String() {
		t.Fatalf("the contract's domain is %s, ours %s", got, domain.Separator())
	}
	until := c.Now().Add(time.Hour)
	for i, nonce := range []string{"a", "b", "c", "d", "e", "f"} { // both values of v turn up
		a, s := c.Authorize(token, payer, shop, int64(1+i), nonce, until)
		submit := chain.TransferCall(a, s)
		kind := evm.Transfer
		if i%2 == 1 {
			kind = evm.Receive
			s = payer.Sign(a.Digest(domain, kind))
			submit = chain.ReceiveCall(a, s)
		}
		if err := a.Signed(domain, kind, s); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		if text := s.String(); must(evm.ParseSignature(text)) != s {
			t.Errorf("%s is read as another", text)
		}
		c.Send(shop, token, submit)
	}
	if got := c.Balance(token, shop).Int64(); got != 21 {
		t.Errorf("the shop has %d", got)
	}

	a, s := c.Authorize(token, payer, shop, 5, "spoilt", until)
	order := must(evm.ParseHash("0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141")).Number()
	upper := s // the second signature that anybody can make out of a first
	copy(upper.S[:], new(big.Int).Sub(order, s.S.Number()).FillBytes(make([]byte, 32)))
	upper.V ^= 27 ^ 28
	spoilt := map[string]evm.Signature{
		"s in the upper half": upper, "v 0": {R: s.R, S: s.S, V: s.V - 27}, "v 29": {R: s.R, S: s.S, V: 29}, "v of a short key": {R: s.R, S: s.S, V: s.V + 4}, "the other v": {R: s.R, S: s.S, V: s.V ^ 27 ^ 28},
		"r 0": {S: s.S, V: s.V}, "s 0": {R: s.R, V: s.V}, "r past the order": {R: evm.Hash(order.FillBytes(make([]byte, 32))), S: s.S, V: s.V},
		"another's":               chain.NewWallet("thief").Sign(a.Digest(domain, evm.Transfer)),
		"for the recipient alone": payer.Sign(a.Digest(domain, evm.Receive)),
	}
	for what, s := range spoilt {
		err := a.Signed(domain, evm.Transfer, s)
		why := c.Refuses(shop, token, chain.TransferCall(a, s))
		if err == nil || why == "" {
			t.Errorf("%s: we say %v, the contract %q", what, err, why)
		}
	}
	// A signature for another token, chain, value, recipient or nonce is not one for this.
	for what, change := range map[string]func(*evm.Authorization, *evm.Domain){
		"chain":    func(_ *evm.Authorization, d *evm.Domain) { d.ChainID = big.NewInt(1) },
		"contract": func(_ *evm.Authorization, d *evm.Domain) { d.Contract = shop },
		"version":  func(_ *evm.Authorization, d *evm.Domain) { d.Version = "1" },
		"value":    func(a *evm.Authorization, _ *evm.Domain) { a.Value = big.NewInt(6) },
		"to":       func(a *evm.Authorization, _ *evm.Domain) { a.To = payer.Address },
		"nonce":    func(a *evm.Authorization, _ *evm.Domain) { a.Nonce = evm.Hash{1} },
		"end":      func(a *evm.Authorization, _ *evm.Domain) { a.ValidBefore = big.NewInt(1) },
	} {
		a, d := a, domain
		change(&a, &d)
		if err := a.Signed(d, evm.Transfer, s); !errors.Is(err, evm.ErrSigner) {
			t.Errorf("another %s: %v", what, err)
		}
	}
	if err := a.Signed(domain, evm.Transfer, s); err != nil {
		t.Errorf("unspoilt: %v", err)
	}
	negative := a
	negative.Value = big.NewInt(-5)
	if err := negative.Signed(domain, evm.Transfer, s); !errors.Is(err, evm.ErrNumber) {
		t.Errorf("a negative value: %v", err)
	}
}
