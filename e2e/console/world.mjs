// Data for every screen, honest and hostile.
import { plant, prefixed, STORES } from './kit.mjs';

export const SCRIPT = '<script>alert(1)</script><img src=x onerror=alert(2)>';

export async function furnish({ api }) {
  const notes = await plant(api, 'Team notes', {
    '/releases/versioning.md': '# Versions\n\nMinor for features, patch for fixes.\n\n| what | bump |\n| --- | --- |\n| feature | minor |\n| fix | patch |\n\nSee [who releases](/releases/who.md).\n',
    '/releases/who.md': 'Ada releases on Fridays.\n',
    '/releases/checklists/tag.md': '- [ ] Run the suites\n- [ ] Tag\n',
    '/testing/flaky.md': 'The upload test is flaky on Mondays: retry it once.\n',
    '/glossary.md': '**Store**: a versioned file tree.\n\n> Sessions end, stores stay.\n',
  }, 'Conventions of the team: look here before you change a release or a test.');
  const who = await api('GET', `${STORES}/${notes}/memory?path=/releases/who.md`);
  const at = `${STORES}/${notes}/memories/${who.memory_id}`;
  await api('POST', at, { content: 'Ada releases on Thursdays, and Grace when Ada is away.\n' });
  await api('POST', at, { path: '/releases/people.md' });

  const hostile = await plant(api, `"><script>alert('store')</script>`, {
    [`/<img src=x onerror=alert(1)>.md`]: `# hi ${SCRIPT}\n[a](javascript:alert(1)) ![b](http://example.invalid/pixel.png) <svg onload=alert(1)>\n`,
    '/ansi.md': 'red \u001b[31mtext\u001b[0m and a bell \u0007 here\n',
    '/direction.md': 'invoice \u202efdp.exe\u202c and zero\u200bwidth\n',
    '/one-line.md': 'word '.repeat(20_000),
    '/a\u00e9.md': 'x', '/\u0430.md': 'Cyrillic a', '/a.md': 'Latin a', '/ a.md': 'leading blank',
    [`/${'n'.repeat(250)}.md`]: 'a long name',
  }, `${SCRIPT} description`);

  const agent = await api('POST', '/managed-agents/v1/agents', { name: `Reviewer ${SCRIPT}`, model: 'anthropic/claude-sonnet-4-5', system: 'Review what was merged.' });
  const environment = await api('POST', '/v1/environments', { name: 'our machines', config: { type: 'self_hosted' } });
  const session = await api('POST', '/v1/sessions', {
    agent: prefixed('agent', agent.agent_id), environment_id: environment.id,
    resources: [{ type: 'memory_store', memory_store_id: prefixed('memstore', notes), access: 'read_write', instructions: `Check first. ${SCRIPT}` }],
  });
  const sessionId = (await api('GET', '/managed-agents/v1/sessions')).sessions[0].session_id;
  await api('POST', `/managed-agents/v1/sessions/${sessionId}/events`, {
    events: [
      { type: 'user.message', text: `Who releases? ${SCRIPT}` },
      { type: 'agent.tool_use', id: 'tool-1', name: 'read_memory', input: { path: '/releases/people.md' } },
      { type: 'agent.tool_result', tool_use_id: 'tool-1', text: 'Ada releases on Thursdays.' },
      { type: 'agent.message', text: 'Ada, on Thursdays.' },
    ],
  });
  const versions = await api('GET', `/managed-agents/v1/agents/${agent.agent_id}`);
  const automation = await api('POST', '/managed-agents/v1/automations', {
    displayName: 'Nightly review', agentId: agent.agent_id, agentVersionId: versions.latest_agent_version_id,
    environmentId: uuidOf(environment.id), initialPrompt: { type: 'literal', text: 'Review what was merged today.' },
    runDefaults: { metadata: null, memoryStores: [{ memoryStoreId: notes, access: 'read_only', instructions: 'Release policy.' }] },
    triggers: [{ type: 'schedule', triggerId: crypto.randomUUID(), enabled: true, schedule: { cron: '30 2 * * *', timezone: 'Europe/Berlin' } }],
  }, { 'idempotency-key': crypto.randomUUID() });
  return { notes, hostile, agent: agent.agent_id, session: sessionId, sessionToken: session.id, automation: automation.automationId, people: who.memory_id };
}

function uuidOf(id) {
  const digits = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
  const number = [...id.slice(id.indexOf('_01') + 3)].reduce((sum, digit) => sum * 58n + BigInt(digits.indexOf(digit)), 0n);
  const hex = number.toString(16).padStart(32, '0');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}
