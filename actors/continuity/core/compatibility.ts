/** Whether a runtime offers what an execution requires. */

import type { RuntimeKind } from '../../../schema/continuity-words.js';
import type { RuntimeCapabilities } from '../../../schema/handoff.js';
import type { UnixMs } from '../../../src/base/time.js';
import { isLive, trustRank } from './capabilities.js';
import type { Finding } from './findings.js';
import type { Requirements } from './requirements.js';

const KINDS_WITH_PEOPLE: readonly RuntimeKind[] = ['mobile', 'desktop', 'browser'];

/** Every requirement that the runtime does not meet, or the one finding `COMPATIBLE`. */
export function compatibilityFindings(
  offered: RuntimeCapabilities,
  required: Requirements,
  now: UnixMs,
): readonly Finding[] {
  const findings = [
    ...lifeFindings(offered, now),
    ...offerFindings(offered, required),
    ...interactionFindings(offered, required),
  ];
  if (findings.length > 0) return findings;
  return [finding('COMPATIBLE', 'pass', 'the runtime offers everything that is required')];
}

function lifeFindings(offered: RuntimeCapabilities, now: UnixMs): Finding[] {
  const findings: Finding[] = [];
  if (!isLive(offered, now)) {
    findings.push(fail('CAPABILITIES_EXPIRED', `the registration ended at ${offered.expires_at}`));
  }
  if (offered.draining) findings.push(fail('RUNTIME_DRAINING', 'the runtime takes nothing new'));
  return findings;
}

/** Lists of which the runtime must offer all required entries. */
const NEEDED = [
  ['handlers', 'HANDLERS_MISSING'],
  ['plugins', 'PLUGINS_MISSING'],
  ['credentials', 'CREDENTIALS_MISSING'],
  ['hardware', 'HARDWARE_MISSING'],
] as const;

function offerFindings(offered: RuntimeCapabilities, required: Requirements): Finding[] {
  const findings: Finding[] = [];
  for (const [facts, code] of NEEDED) {
    const given = new Set(offered[facts]);
    const missing = required[facts].filter((fact) => !given.has(fact));
    if (missing.length > 0) findings.push(fail(code, `missing ${facts}: ${missing.join(', ')}`));
  }
  const regions = new Set(offered.regions);
  if (required.regions.length > 0 && !required.regions.some((one) => regions.has(one))) {
    const allowed = required.regions.join(', ');
    findings.push(fail('REGION_NOT_ALLOWED', `the runtime is in none of the regions ${allowed}`));
  }
  if (trustRank(offered.trust) < trustRank(required.minimum_trust)) {
    const summary = `the runtime is ${offered.trust}, required is ${required.minimum_trust}`;
    findings.push(fail('TRUST_TOO_LOW', summary));
  }
  return findings;
}

function interactionFindings(offered: RuntimeCapabilities, required: Requirements): Finding[] {
  const findings: Finding[] = [];
  if (required.requires_human_ui && !KINDS_WITH_PEOPLE.includes(offered.kind)) {
    const summary = `a runtime of kind ${offered.kind} may have nobody at its screen`;
    findings.push(finding('HUMAN_UI_MISSING', 'unknown', summary));
  }
  if (required.requires_network && offered.connectivity === 'offline') {
    findings.push(fail('NETWORK_UNAVAILABLE', 'the runtime is offline'));
  }
  if (required.requires_network && offered.connectivity === undefined) {
    const summary = 'the runtime does not say how it is connected';
    findings.push(finding('NETWORK_UNKNOWN', 'unknown', summary));
  }
  return findings;
}

function fail(code: string, summary: string): Finding {
  return finding(code, 'fail', summary);
}

function finding(code: string, status: Finding['status'], summary: string): Finding {
  return { code, status, summary };
}
