package main

import "encoding/json"

// listen opens a subscription, which stays open until it is cancelled or the input ends.
func (s *server) listen(r *request) (object, *failure) {
	filter, ok := r.params["notifications"].(object)
	if !ok {
		return nil, fail(-32602, "notifications is missing")
	}
	for _, key := range []string{"toolsListChanged", "promptsListChanged", "resourcesListChanged"} {
		if _, isBool := filter[key].(bool); filter[key] != nil && !isBool {
			return nil, fail(-32602, "%s is no boolean", key)
		}
	}
	if _, isList := filter["resourceSubscriptions"].([]any); filter["resourceSubscriptions"] != nil && !isList {
		return nil, fail(-32602, "resourceSubscriptions is no array")
	}
	heard := object{}
	if filter["toolsListChanged"] == true {
		heard["toolsListChanged"] = true
	}
	if uris := filter["resourceSubscriptions"]; uris != nil {
		heard["resourceSubscriptions"] = uris
	}
	if s.is("acknowledges-everything") {
		heard = object{"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true}
	}
	if !s.is("listen-unacknowledged") {
		s.notify("notifications/subscriptions/acknowledged", s.tagged(r, object{"notifications": heard}))
	}
	s.mu.Lock()
	s.listens[string(r.id)] = r
	if s.ended {
		r.cancel()
	}
	s.mu.Unlock()
	if s.is("listen-ends-at-once") {
		return object{"_meta": object{prefix + "subscriptionId": r.id}}, nil
	}
	<-r.ctx.Done()
	if s.is("listen-answers-cancel") {
		s.write(s.resultReply(r, object{"_meta": object{prefix + "subscriptionId": r.id}}))
	}
	return nil, nil
}

// tagged adds the id of a subscription to a notification's params.
func (s *server) tagged(r *request, params object) object {
	switch s.fault {
	case "untagged":
		return params
	case "tags-as-strings":
		text, _ := json.Marshal(string(r.id))
		params["_meta"] = object{prefix + "subscriptionId": json.RawMessage(text)}
	default:
		params["_meta"] = object{prefix + "subscriptionId": r.id}
	}
	return params
}

// toolsChanged tells those who want to hear it.
func (s *server) toolsChanged() {
	s.mu.Lock()
	session := s.session
	var ears []*request
	for _, r := range s.listens {
		filter, _ := r.params["notifications"].(object)
		if filter["toolsListChanged"] == true || s.is("tells-all-listeners") {
			ears = append(ears, r)
		}
	}
	s.mu.Unlock()
	if session != "" && !s.is("change-untold") || s.is("tells-everybody") {
		s.notify("notifications/tools/list_changed", nil)
	}
	for _, r := range ears {
		s.notify("notifications/tools/list_changed", s.tagged(r, object{}))
	}
}

func (s *server) resourceUpdated(uri string) {
	s.mu.Lock()
	told := s.watched[uri] || s.is("tells-unsubscribed")
	var ears []*request
	for _, r := range s.listens {
		filter, _ := r.params["notifications"].(object)
		uris, _ := filter["resourceSubscriptions"].([]any)
		for _, u := range uris {
			if u == uri {
				ears = append(ears, r)
			}
		}
	}
	s.mu.Unlock()
	if told {
		s.notify("notifications/resources/updated", object{"uri": uri})
	}
	for _, r := range ears {
		s.notify("notifications/resources/updated", s.tagged(r, object{"uri": uri}))
	}
}

// closeListens ends every subscription from the server's side.
func (s *server) closeListens() {
	s.mu.Lock()
	var open []*request
	for _, r := range s.listens {
		open = append(open, r)
	}
	s.mu.Unlock()
	for _, r := range open {
		if s.is("leaves-listeners") {
			continue
		}
		s.notify("notifications/cancelled", object{"requestId": r.id})
		s.write(s.resultReply(r, object{"_meta": object{prefix + "subscriptionId": r.id}}))
	}
}
