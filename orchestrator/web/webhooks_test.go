package web_test

import (
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/testing/trusted"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/feature/webhooks"
)

func TestThePageOfWebhooks(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	p.signIn(access.Run, access.Read)
	p.get("/ui/webhooks").wants(t, 200, "Nobody is told of runs", "aod webhook add")
	told, _ := orchestrator.FeatureOf[*webhooks.Feature](p.svc)
	hook, err := told.Add(trusted.Context(t), api.WebhookRequest{URL: "http://hook.example:1/<s>", Events: []string{api.WebhookRunFailed}})
	must(t, err)
	p.get("/ui/webhooks").wants(t, 200, "hook.example:1/", "&lt;s&gt;", "Active", api.WebhookRunFailed, "Remove").lacks(t, "<s>", hook.Secret)
	p.post("/ui/webhooks/"+hook.ID+"/test").wants(t, 200, "The receiver was asked", "unanswered")
	p.signIn(access.Read)
	p.get("/ui/webhooks").wants(t, 200, "hook.example").lacks(t, "Remove")
	p.post("/ui/webhooks/"+hook.ID+"/test").wants(t, 403)
	p.post("/ui/webhooks/"+hook.ID+"/remove").wants(t, 403)
	p.signIn(access.Admin)
	p.post("/ui/webhooks/"+hook.ID+"/remove").leads(t, "../../webhooks")
	p.post("/ui/webhooks/"+hook.ID+"/remove").leads(t, "../../webhooks")
	p.post("/ui/webhooks/"+hook.ID+"/test").wants(t, 404)
	p.get("/ui/webhooks").wants(t, 200, "Nobody is told of runs")
}
