package workflow

import (
	"errors"
	"strings"
)

// byteOrderMark is what some editors put before the text of a file in UTF-8. It
// means nothing there.
const byteOrderMark = "\uFEFF"

// errUTF16 refuses another encoding, as PowerShell's `>` writes it.
var errUTF16 = errors.New("it is in UTF-16, not in UTF-8; save it as UTF-8")

// Text is the text of a file that a person has written: without the byte-order
// mark, which readers of TOML, JSON and graphs trip over and which must not get
// into a prompt.
func Text(data []byte) (string, error) {
	text := string(data)
	if strings.HasPrefix(text, "\xff\xfe") || strings.HasPrefix(text, "\xfe\xff") {
		return "", errUTF16
	}
	return strings.TrimPrefix(text, byteOrderMark), nil
}
