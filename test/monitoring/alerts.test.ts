/** Each alert has a runbook, reads metrics that exist, and fires by its cause. None fires in a calm service. */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse as parseGraphql, validate } from 'graphql';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parse, stringify } from 'yaml';
import { FIGURES } from '../../entities/monitoring/figures.ts';
import { MEASURES } from '../../entities/monitoring/measures.ts';
import { schema } from '../../schema/index.ts';
import { newFolder, removeFolder } from '../setup/spawn.ts';

const RULES = 'docs/operate/monitoring/alerts.yaml';
interface Rule {
  alert: string;
  expr: string;
  labels: { severity: string };
  annotations: { summary: string };
}
const rules: Rule[] = parse(readFileSync(RULES, 'utf8')).groups[0].rules;

/** The series of a service in trouble and of a calm one. A value with `+` is the growth in a minute. */
const CAUSES: Record<string, [series: string, trouble: string, calm: string][]> = {
  FreeholdDown: [['up{job="freehold"}', '0', '1']],
  FreeholdDatabaseDown: [['freehold_database_up', '0', '1']],
  FreeholdFaults: [['freehold_requests_total{facade="rest",operation="GetServer",status="500"}', '+1', '0']],
  FreeholdSlow: [
    ['freehold_request_seconds_bucket{facade="rest",operation="GetBalance",le="1"}', '+1', '+10'],
    ['freehold_request_seconds_bucket{facade="rest",operation="GetBalance",le="2.5"}', '+10', '+10'],
    ['freehold_request_seconds_bucket{facade="rest",operation="GetBalance",le="+Inf"}', '+10', '+10'],
  ],
  FreeholdWorkersLate: [['freehold_tasks_due_age_seconds{lane="servers"}', '400', '2']],
  FreeholdTasksDead: [['freehold_tasks_stuck{state="DEAD"}', '1', '0']],
  FreeholdTasksFailing: [['freehold_tasks_stuck{state="FAILING"}', '11', '3']],
  FreeholdLeasesLost: [['freehold_leases_lost_total{lane="servers"}', '+1', '0']],
  FreeholdStepsAbandoned: [['freehold_steps_abandoned_total{lane="servers"}', '+1', '0']],
  FreeholdDriverErrors: [
    ['freehold_driver_calls_total{kind="engine",driver="lxc",call="observe",outcome="unreachable"}', '+9', '+1'],
    ['freehold_driver_calls_total{kind="engine",driver="lxc",call="observe",outcome="ok"}', '+1', '+9'],
  ],
  FreeholdPartOut: [['freehold_health{component="machines-zrh"}', '0.5', '1']],
  FreeholdCircuitBreakerOpen: [['freehold_circuit_breakers{engine="lxc"}', '1', '_']],
  FreeholdFindings: [['freehold_findings{kind="LOST"}', '1', '_']],
  FreeholdChainBehind: [['freehold_chain_lag_seconds{network="bitcoin"}', '700', '20']],
  FreeholdPaymentsUnmatched: [['freehold_payments{state="UNMATCHED"}', '1', '0']],
  FreeholdWebhooksLate: [['freehold_webhook_lag_seconds', '1000', '1']],
  FreeholdConnectionsUsedUp: [['freehold_connections{state="waiting"}', '1', '0']],
  FreeholdEventLoopSlow: [['nodejs_eventloop_lag_p99_seconds{job="freehold"}', '0.6', '0.02']],
  FreeholdBooksWrong: [['freehold_books_balanced', '0', '1']],
  FreeholdBooksUnproven: [['freehold_books_proof_age_seconds', '180000', '50000']],
  FreeholdCanaryExpires: [['freehold_canary_left_seconds', '500000', '2000000']],
  FreeholdBackupOld: [['freehold_backup_age_seconds', '700000', '80000']],
};

/** The expressions of the dashboard. */
const shown: string[] = JSON.parse(readFileSync('docs/operate/monitoring/dashboard.json', 'utf8')).panels.flatMap(
  ({ targets = [] }: { targets?: { expr: string }[] }) => targets.map(({ expr }) => expr),
);
const MINUTES = 150;
const valuesOf = (value: string) =>
  value.startsWith('+') ? `0${value}x${MINUTES}` : value === '_' ? `_x${MINUTES}` : `${value}+0x${MINUTES}`;

describe('The alerts', () => {
  it('have a runbook each, with a look and an act, and no other', () => {
    const sections = readFileSync('docs/operate/monitoring/alerts.md', 'utf8').split(/^## /m).slice(1);
    expect(sections.map((section) => section.split('\n')[0])).toEqual(rules.map(({ alert }) => alert));
    expect(sections.filter((section) => !/^- Look: [\s\S]*^- Do: /m.test(section))).toEqual([]);
    for (const { labels, annotations } of rules) {
      expect(['critical', 'warning']).toContain(labels.severity);
      expect(annotations.summary).toMatch(/\.$/);
    }
  });

  it('have runbooks whose queries the schema knows', () => {
    const queries = [...readFileSync('docs/operate/monitoring/alerts.md', 'utf8').matchAll(/`operator '(.+?)'`/g)];
    expect(queries.length).toBeGreaterThan(5);
    const wrong = queries.flatMap(([, query]) => validate(schema, parseGraphql(query!)));
    expect(wrong.map(({ message }) => message)).toEqual([]);
  });

  it('have runbooks that find a line of the log among those of systemd', () => {
    const filters = [...readFileSync('docs/operate/monitoring/alerts.md', 'utf8').matchAll(/jq (-\w+) '(.+?)'`/g)];
    const line = '{"level":"error","msg":"The step does not end."}';
    const journal = ['Started freehold.service - Freehold.', '{"level":"info","msg":"One."}', line, '-- Boot 1 --', ''];
    for (const [, options, filter] of filters) {
      const { stdout, status } = spawnSync('jq', [options!, filter!], { input: journal.join('\n'), encoding: 'utf8' });
      expect({ stdout, status }).toEqual({ stdout: `${line}\n`, status: 0 });
    }
    expect(filters).toHaveLength(2);
  });

  it('read metrics that the service has, and so does the dashboard', () => {
    const known = new Set([
      ...['freehold_database_up', 'freehold_connections', 'nodejs_eventloop_lag_p99_seconds'],
      ...['process_cpu_seconds_total', 'process_resident_memory_bytes'],
      ...MEASURES.flatMap(({ name, isCounter }) =>
        isCounter ? name : ['bucket', 'sum', 'count'].map((part) => `${name}_${part}`),
      ),
      ...Object.keys(FIGURES).map((name) => `freehold_${name}`),
    ]);
    const expressions = [...rules.map(({ expr }) => expr), ...shown];
    const read = expressions.flatMap((expr) => expr.match(/\b(freehold|nodejs|process)_\w+/g) ?? []);
    expect(read.filter((name) => !known.has(name))).toEqual([]);
    expect(Object.keys(FIGURES).filter((name) => !shown.join().includes(`freehold_${name}`))).toEqual([
      'chain_lag_blocks',
      'canary_age_seconds',
    ]);
  });

  const lacksPromtool = spawnSync('promtool', ['--version']).error !== undefined;
  if (lacksPromtool) console.warn("skipped: promtool, from Debian's package prometheus");
  const promtool = (...args: string[]) => {
    const { status, stdout, stderr } = spawnSync('promtool', args);
    return { status, output: `${stdout}${stderr}` };
  };

  it.skipIf(lacksPromtool)('are rules that promtool accepts', () => {
    expect(promtool('check', 'rules', RULES)).toMatchObject({ status: 0 });
  });

  it.skipIf(lacksPromtool)('have a dashboard beside them, whose expressions promtool accepts, too', () => {
    const folder = newFolder();
    onTestFinished(() => removeFolder(folder));
    const file = join(folder, 'dashboard.yaml');
    const asRules = shown.map((expr, index) => ({ record: `panel:${index}`, expr }));
    writeFileSync(file, stringify({ groups: [{ name: 'dashboard', rules: asRules }] }));
    expect(promtool('check', 'rules', file)).toMatchObject({ status: 0 });
  });

  it.skipIf(lacksPromtool)('fire by their causes, and none fires in a calm service', () => {
    const folder = newFolder();
    onTestFinished(() => removeFolder(folder));
    expect(Object.keys(CAUSES)).toEqual(rules.map(({ alert }) => alert));
    const seriesOf = (causes: (typeof CAUSES)[string], isCalm: boolean) =>
      causes.map(([series, trouble, calm]) => ({ series, values: valuesOf(isCalm ? calm : trouble) }));
    const trouble = Object.entries(CAUSES).map(([alert, causes]) => ({
      interval: '1m',
      input_series: seriesOf(causes, false),
      promql_expr_test: [
        {
          expr: `count(ALERTS{alertname="${alert}",alertstate="firing"})`,
          eval_time: `${MINUTES}m`,
          exp_samples: [{ labels: '{}', value: 1 }],
        },
      ],
    }));
    const calm = {
      interval: '1m',
      input_series: Object.values(CAUSES).flatMap((causes) => seriesOf(causes, true)),
      promql_expr_test: [{ expr: 'count(ALERTS)', eval_time: `${MINUTES}m`, exp_samples: [] }],
    };
    const file = join(folder, 'alerts.yml');
    const rule_files = [join(process.cwd(), RULES)];
    writeFileSync(file, stringify({ rule_files, evaluation_interval: '1m', tests: [...trouble, calm] }));
    expect(promtool('test', 'rules', file)).toMatchObject({ status: 0 });
  });
});
