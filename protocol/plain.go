package protocol

import "math/bits"

// plainByte marks the bytes that stand for themselves inside a JSON string.
var plainByte = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= 0x20 && c != '"' && c != '\\'
	}
	return t
}()

// One byte, repeated in a word.
const (
	ones    = 0x0101010101010101
	highs   = 0x80 * ones
	spaces  = ' ' * ones
	quotes  = '"' * ones
	slashes = '\\' * ones
)

// word is eight bytes of s from i on, the first one lowest.
func word[T string | []byte](s T, i int) uint64 {
	b := s[i : i+8]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

// special has the high bit of each byte set that does not stand for itself inside a
// JSON string. Only the lowest bit that is set is exact: the subtractions may carry
// into the bytes above it.
func special(w uint64) uint64 {
	quote, slash := w^quotes, w^slashes
	return ((w-spaces)&^w | (quote-ones)&^quote | (slash-ones)&^slash) & highs
}

// skipPlain returns the index of the first byte from i on that does not stand for
// itself, or the length.
func skipPlain(b []byte, i int) int {
	for ; i+8 <= len(b); i += 8 {
		if at := special(word(b, i)); at != 0 {
			return i + bits.TrailingZeros64(at)/8
		}
	}
	for i < len(b) && plainByte[b[i]] {
		i++
	}
	return i
}

// skipPlainASCII is skipPlain that also stops at what is not ASCII.
func skipPlainASCII[T string | []byte](s T, i int) int {
	for ; i+8 <= len(s); i += 8 {
		w := word(s, i)
		if at := special(w) | w&highs; at != 0 {
			return i + bits.TrailingZeros64(at)/8
		}
	}
	for i < len(s) && plainByte[s[i]] && s[i] < 0x80 {
		i++
	}
	return i
}
