"""A generated catalogue of 3 000 plausible tools: fifty services, ten things each, six verbs."""

from __future__ import annotations

import re

from tool_bindings import Output, ToolDefinition

THINGS = {
    "github": "issue, pull request, branch, repository, release, workflow run, label, "
    "milestone, gist, code review",
    "gitlab": "merge request, issue, pipeline, runner, project, snippet, wiki page, tag, deploy "
    "key, environment",
    "jira": "issue, sprint, board, epic, worklog, component, filter, version, comment, attachment",
    "slack": "message, channel, user, reminder, file, reaction, usergroup, bookmark, thread, emoji",
    "stripe": "customer, charge, refund, invoice, subscription, coupon, payout, dispute, product, price",
    "salesforce": "lead, opportunity, account, contact, campaign, case, task, quote, contract, report",
    "hubspot": "deal, contact, company, form, email template, list, ticket, landing page, workflow, meeting",
    "zendesk": "ticket, macro, article, organization, agent, satisfaction rating, trigger, view, group, tag",
    "aws": "bucket, instance, lambda function, security group, queue, topic, database "
    "snapshot, load balancer, secret, log group",
    "gcp": "virtual machine, storage bucket, pubsub topic, bigquery dataset, service "
    "account, cloud function, firewall rule, dns zone, kubernetes cluster, budget",
    "azure": "resource group, blob container, key vault, web app, sql database, virtual "
    "network, disk, role assignment, event hub, container registry",
    "kubernetes": "pod, deployment, service, config map, namespace, node, ingress, cron job, "
    "persistent volume, secret",
    "docker": "container, image, network, volume, compose stack, registry, build cache, swarm "
    "node, plugin, context",
    "google_calendar": "event, calendar, attendee, reminder, free busy slot, access rule, meeting room, "
    "recurring event, color, holiday",
    "gmail": "email, draft, label, filter, attachment, thread, signature, vacation reply, "
    "forwarding address, alias",
    "google_drive": "file, folder, permission, comment, revision, shortcut, shared drive, trash item, "
    "change, export",
    "notion": "page, database, block, comment, workspace user, template, property, relation, view, sync",
    "trello": "card, board, list, checklist, member, label, attachment, comment, webhook, power up",
    "asana": "task, project, section, portfolio, goal, team, tag, story, subtask, status update",
    "linear": "issue, cycle, project, roadmap, team, label, document, comment, attachment, triage rule",
    "shopify": "order, product, customer, collection, discount code, inventory level, "
    "fulfillment, gift card, theme, draft order",
    "mailchimp": "campaign, audience, subscriber, segment, template, automation, landing page, "
    "tag, report, survey",
    "twilio": "text message, phone call, phone number, recording, conference, voicemail, "
    "verification, fax, sim card, messaging service",
    "discord": "message, server, role, channel, webhook, emoji, invite, voice state, ban, sticker",
    "spotify": "playlist, track, album, artist, podcast episode, queue item, playback device, "
    "saved show, audiobook, listening history",
    "youtube": "video, playlist, comment, channel, caption, live broadcast, subscription, "
    "thumbnail, activity, watermark",
    "postgres": "table, row, index, view, role, extension, backup, connection, schema, trigger",
    "mongodb": "collection, document, index, cluster, user, backup, aggregation pipeline, change "
    "stream, shard, view",
    "redis": "key, hash, set, stream, list, lock, channel, script, cluster node, snapshot",
    "datadog": "monitor, dashboard, metric, incident, log pipeline, synthetic test, downtime, "
    "slo, notebook, host tag",
    "pagerduty": "incident, schedule, escalation policy, on call shift, service, maintenance "
    "window, responder, postmortem, team, event rule",
    "sentry": "issue, project, release, alert rule, event, team, dsn key, replay, dashboard, environment",
    "grafana": "dashboard, panel, data source, alert, folder, annotation, snapshot, playlist, user, api key",
    "jenkins": "job, build, node, plugin, view, credential, queue item, artifact, folder, agent",
    "okta": "user, group, application, policy, session, factor, role, event hook, identity "
    "provider, authorization server",
    "zoom": "meeting, webinar, recording, participant, poll, room, user, registrant, chat "
    "channel, transcript",
    "figma": "design file, component, comment, frame, style, team library, version, prototype, "
    "variable, plugin",
    "airtable": "base, table, record, field, view, automation, interface, form, attachment, comment",
    "quickbooks": "invoice, bill, vendor, expense, payment, estimate, journal entry, tax code, "
    "employee, bank account",
    "xero": "invoice, bank transaction, contact, purchase order, credit note, payroll run, "
    "tax rate, budget, asset, timesheet",
    "workday": "employee, time off request, job requisition, payslip, benefit, position, "
    "performance review, org chart, expense report, candidate",
    "greenhouse": "candidate, job, application, interview, scorecard, offer, referral, rejection "
    "reason, department, prospect",
    "home_assistant": "light, thermostat, scene, automation, sensor, camera, door lock, media player, "
    "blind, vacuum cleaner",
    "uber": "ride, fare estimate, driver, receipt, saved place, promotion, delivery, courier, "
    "rating, payment method",
    "booking": "hotel reservation, flight, car rental, room, guest review, traveler profile, "
    "itinerary, loyalty program, airport transfer, travel voucher",
    "strava": "activity, route, segment, club, gear, athlete, kudos, challenge, heart rate "
    "zone, training plan",
    "wordpress": "post, page, comment, media item, category, plugin, theme, user, menu, widget",
    "confluence": "page, space, blog post, attachment, label, template, comment, restriction, "
    "whiteboard, macro",
    "bitbucket": "repository, pull request, commit, branch restriction, pipeline, deployment, "
    "snippet, webhook, issue, download",
    "cloudflare": "dns record, zone, firewall rule, worker script, page rule, ssl certificate, "
    "cache purge, tunnel, load balancer, access policy",
}
"""What each service has."""

SENTENCES = {
    "list": ("List {plural} in {service}.", "Return all {plural} of a {service} workspace, page by page."),
    "get": ("Get one {thing} from {service} by id.", "Retrieve the details of a {service} {thing}."),
    "create": ("Create a {thing} in {service}.", "Add a new {thing} to {service}."),
    "update": ("Update a {thing} in {service}.", "Change fields of an existing {service} {thing}."),
    "delete": ("Delete a {thing} from {service}.", "Permanently remove a {service} {thing}."),
    "search": ("Search {plural} in {service} by text.", "Find {service} {plural} that match a query."),
}
PARAMETERS = {
    "list": {"cursor": {"type": "string"}, "page_size": {"type": "integer", "description": "at most 100"}},
    "get": {"id": {"type": "string"}},
    "create": {"name": {"type": "string"}, "fields": {"type": "object"}},
    "update": {"id": {"type": "string"}, "fields": {"type": "object"}},
    "delete": {"id": {"type": "string"}, "confirm": {"type": "boolean"}},
    "search": {"query": {"type": "string"}, "limit": {"type": "integer"}},
}
RESULT = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "url": {"type": "string"}},
    "required": ["id"],
    "additionalProperties": False,
}


def tool_name(service: str, thing: str, verb: str) -> str:
    """Name a tool in the style of its service: vendors differ."""
    words = [*service.split("_"), verb, *thing.split()]
    style = list(THINGS).index(service) % 4
    if style == 1:
        words = [*service.split("_"), *thing.split(), verb]
    if style == 2:
        return words[0] + "".join(word.capitalize() for word in words[1:])
    return ("-" if style == 3 else "_").join(words)


def many_tools() -> list[ToolDefinition]:
    """Return the catalogue, the same in every process."""
    return [
        _definition(service, thing, verb)
        for service, things in THINGS.items()
        for thing in re.split(r",\s*", things)
        for verb in SENTENCES
    ]


def _definition(service: str, thing: str, verb: str) -> ToolDefinition:
    label = " ".join(word.capitalize() for word in service.split("_"))
    plural = thing[:-1] + "ies" if thing.endswith("y") else thing + "s"
    sentence = SENTENCES[verb][len(thing) % 2]
    properties = PARAMETERS[verb]
    return ToolDefinition(
        name=tool_name(service, thing, verb),
        description=sentence.format(plural=plural, thing=thing, service=label),
        parameters={
            "type": "object",
            "properties": properties,
            "required": list(properties)[:1],
            "additionalProperties": False,
        },
        output=Output(RESULT),
        execute=_nothing,
    )


async def _nothing(_arguments: object, _context: object) -> object:
    return {"id": "1"}
