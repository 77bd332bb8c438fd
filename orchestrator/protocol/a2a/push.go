package a2a

import (
	"context"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

const noPushText = "this server pushes nothing: subscribe to the task, or ask for it; the operator can allow it by " +
	"a2a.push: true"

// CreateTaskPushConfig implements a2asrv.RequestHandler.
func (h *handler) CreateTaskPushConfig(ctx context.Context, req *sdk.PushConfig) (*sdk.PushConfig, error) {
	return pushed(ctx, h, req.TaskID, func(run string) (*sdk.PushConfig, error) {
		made, err := h.push.CreatePush(ctx, run, configOf(req))
		return shownConfig(run, made), err
	})
}

// GetTaskPushConfig implements a2asrv.RequestHandler.
func (h *handler) GetTaskPushConfig(ctx context.Context, req *sdk.GetTaskPushConfigRequest) (*sdk.PushConfig, error) {
	return pushed(ctx, h, req.TaskID, func(run string) (*sdk.PushConfig, error) {
		config, err := h.pushOf(ctx, run, req.ID)
		if fault.Is(err, fault.NotFound) {
			return nil, refuse(noTask, "push configuration not found: the task has none of this id")
		}
		return shownConfig(run, config), err
	})
}

// pushOf returns a push of a run; without an id the first one.
func (h *handler) pushOf(ctx context.Context, run, id string) (api.Push, error) {
	if id != "" {
		return h.push.Push(ctx, run, id)
	}
	all, err := h.push.Pushes(ctx, run)
	if err == nil && len(all) == 0 {
		err = fault.New(fault.NotFound, "the run has no push")
	}
	if err != nil {
		return api.Push{}, err
	}
	return all[0], nil
}

// ListTaskPushConfigs implements a2asrv.RequestHandler.
func (h *handler) ListTaskPushConfigs(
	ctx context.Context, req *sdk.ListTaskPushConfigRequest,
) (*sdk.ListTaskPushConfigResponse, error) {
	return pushed(ctx, h, req.TaskID, func(run string) (*sdk.ListTaskPushConfigResponse, error) {
		all, err := h.push.Pushes(ctx, run)
		answer := &sdk.ListTaskPushConfigResponse{Configs: []*sdk.PushConfig{}}
		for _, config := range all {
			answer.Configs = append(answer.Configs, shownConfig(run, config))
		}
		callOf(ctx).emptyList.Store(len(all) == 0)
		return answer, err
	})
}

// DeleteTaskPushConfig implements a2asrv.RequestHandler.
func (h *handler) DeleteTaskPushConfig(ctx context.Context, req *sdk.DeleteTaskPushConfigRequest) error {
	_, err := pushed(ctx, h, req.TaskID, func(run string) (none struct{}, err error) {
		if err = h.push.DeletePush(ctx, run, req.ID); fault.Is(err, fault.NotFound) {
			err = nil
		}
		return none, err
	})
	return err
}

// pushed does a method about the pushes of a task, whose run do is told.
func pushed[T any](ctx context.Context, h *handler, id sdk.TaskID, do func(run string) (T, error)) (T, error) {
	return answered(ctx, h, func(c *call) (none T, err error) {
		if h.push == nil {
			return none, refuse(noPush, noPushText)
		}
		record, err := h.tasks.record(ctx, c, id)
		if err != nil {
			return none, err
		}
		return do(record.ID)
	})
}

func configOf(c *sdk.PushConfig) api.PushConfig {
	config := api.PushConfig{ID: c.ID, URL: c.URL, Token: c.Token}
	if c.Auth != nil {
		config.Scheme, config.Credentials = c.Auth.Scheme, c.Auth.Credentials
	}
	return config
}

// shownConfig is a push as clients see it. Its token and credentials are not shown.
func shownConfig(run string, p api.Push) *sdk.PushConfig {
	shown := &sdk.PushConfig{TaskID: sdk.TaskID(run), ID: p.ID, URL: p.URL}
	if p.Scheme != "" {
		shown.Auth = &sdk.PushAuthInfo{Scheme: p.Scheme}
	}
	return shown
}

// inConfig is the place of a finding about a receiver in what an A2A client sent.
func inConfig(pointer string, legacy bool) string {
	config, scheme := "/taskPushNotificationConfig", "/scheme"
	if legacy {
		config, scheme = "/pushNotificationConfig", "/schemes"
	}
	switch pointer {
	case "/scheme":
		return config + "/authentication" + scheme
	case "/credentials":
		return config + "/authentication" + pointer
	}
	return config + pointer
}
