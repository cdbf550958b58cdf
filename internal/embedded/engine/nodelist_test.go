package engine

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNodeList(t *testing.T) {
	l := nodeListOf([]string{"start", "a.b", `odd "\` + "\u00e4,["})
	raw, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	var back nodeList
	if err := json.Unmarshal(raw, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"start", "a.b", `odd "\` + "\u00e4,["}, back.ids()); diff != "" {
		t.Error(diff)
	}
	for _, fine := range []string{`null`, `[]`, ` [ ] `} {
		if err := json.Unmarshal([]byte(fine), &back); err != nil || len(back.ids()) > 0 {
			t.Errorf("%s: %v, %s", fine, err, back)
		}
	}
	for _, bad := range []string{`5`, `"a"`, `{}`, `[1]`, `["a", null]`, `[["a"]]`, `["a\"", {}]`} {
		if err := json.Unmarshal([]byte(bad), &back); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}
