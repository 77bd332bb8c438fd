// Roundtrip asks a server by the generated client.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"mime/multipart"
	"net/http"
	"os"

	"github.com/agent-on-demand/aod/tools/openapi/client"
)

const content = "the report"

func main() {
	if err := ask(context.Background(), os.Args[1], os.Getenv("AOD_TOKEN")); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func ask(ctx context.Context, url, token string) error {
	aod, err := client.NewClientWithResponses(url, client.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+token)
		return nil
	}))
	if err != nil {
		return err
	}
	run, err := submit(ctx, aod)
	if err != nil {
		return err
	}
	return errors.Join(
		wrap("the run", ended(ctx, aod, run)), wrap("the list", listed(ctx, aod, run)), wrap("its file", file(ctx, aod, run)),
		wrap("an unknown run", unknown(ctx, aod)), wrap("an input that isn't valid", refused(ctx, aod)),
	)
}

func wrap(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func submit(ctx context.Context, aod *client.ClientWithResponses) (string, error) {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	file, err := form.CreateFormFile("report", "r.txt")
	if err == nil {
		_, err = file.Write([]byte(content))
	}
	err = errors.Join(err, form.WriteField("unit", "keep"), form.WriteField("input", `{"pages": 3}`), form.Close())
	if err != nil {
		return "", err
	}
	answer, err := aod.SubmitRunWithBodyWithResponse(ctx, &client.SubmitRunParams{}, form.FormDataContentType(), &body)
	switch {
	case err != nil:
		return "", err
	case answer.JSON202 == nil:
		return "", fmt.Errorf("submitted: %s %s", answer.Status(), answer.Body)
	case answer.Headers202.Location == nil || *answer.Headers202.Location != "/v1/runs/"+answer.JSON202.Id:
		return "", fmt.Errorf("it is at %v", answer.Headers202.Location)
	}
	return answer.JSON202.Id, nil
}

func ended(ctx context.Context, aod *client.ClientWithResponses, run string) error {
	wait := "30s"
	answer, err := aod.GetRunWithResponse(ctx, run, &client.GetRunParams{Wait: &wait})
	switch {
	case err != nil:
		return err
	case answer.JSON200 == nil:
		return fmt.Errorf("%s %s", answer.Status(), answer.Body)
	}
	record := *answer.JSON200
	if record.State != client.RunStateCompleted || record.Outcome == nil || *record.Outcome != client.RunOutcomeSuccess ||
		record.Error != nil || record.FinishedAt == nil || len(record.Files) != 1 {
		return fmt.Errorf("%s", answer.Body)
	}
	return nil
}

func listed(ctx context.Context, aod *client.ClientWithResponses, run string) error {
	limit, unit := int64(1), "keep"
	answer, err := aod.ListRunsWithResponse(ctx, &client.ListRunsParams{Limit: &limit, Unit: &unit})
	switch {
	case err != nil:
		return err
	case answer.JSON200 == nil || len(answer.JSON200.Runs) != 1 || answer.JSON200.Runs[0].Id != run:
		return fmt.Errorf("%s %s", answer.Status(), answer.Body)
	}
	return nil
}

func file(ctx context.Context, aod *client.ClientWithResponses, run string) error {
	answer, err := aod.GetFileWithResponse(ctx, run, "r.txt", nil)
	switch {
	case err != nil:
		return err
	case answer.StatusCode() != http.StatusOK || string(answer.Body) != content:
		return fmt.Errorf("%s %s", answer.Status(), answer.Body)
	}
	return nil
}

func unknown(ctx context.Context, aod *client.ClientWithResponses) error {
	answer, err := aod.GetRunWithResponse(ctx, "00000000-0000-7000-8000-000000000000", nil)
	switch {
	case err != nil:
		return err
	case answer.ApplicationproblemJSON404 == nil || answer.ApplicationproblemJSON404.Code != "not_found":
		return fmt.Errorf("%s %s", answer.Status(), answer.Body)
	}
	return nil
}

func refused(ctx context.Context, aod *client.ClientWithResponses) error {
	unit, input := "keep", map[string]any{"pages": 0}
	answer, err := aod.SubmitRunWithResponse(ctx, nil, client.SubmitRunJSONRequestBody{Unit: &unit, Input: &input})
	switch {
	case err != nil:
		return err
	case answer.ApplicationproblemJSON422 == nil || answer.ApplicationproblemJSON422.Findings == nil:
		return fmt.Errorf("%s %s", answer.Status(), answer.Body)
	}
	return nil
}
