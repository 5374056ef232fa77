/** The verdicts of a release's gates at a glance. Reading them does not evaluate the release. */

import type { Release } from 'durable-workflow-engine-client';
import { CircleCheck, CircleDashed, CircleX } from 'lucide-react';
import { useRead } from '../../api/read.ts';
import { Badge, type Tone } from '../../components/badge.tsx';
import { ButtonRow } from '../../components/button.tsx';
import { countOf } from '../../lib/format.ts';
import { type Judgement, metricName, reasonOf, shortVerdict } from './gates.ts';

/** The cost of the sums grows with the number of instances. */
const PACE_MS = 5000;

/** @param isLive read again as instances finish */
export function useGateReport(id: string, isLive: boolean) {
  return useRead('releases.gates', [id], { ...(isLive && { live: 'all', paceMs: PACE_MS }) });
}

const LOOKS: Readonly<Record<Judgement['verdict'], readonly [Tone, typeof CircleX]>> = {
  pass: ['ok', CircleCheck],
  fail: ['danger', CircleX],
  inconclusive: ['idle', CircleDashed],
};

export function VerdictBadge(props: { readonly judgement: Judgement; readonly isNamed?: boolean }) {
  const { judgement, isNamed = false } = props;
  const [tone, Icon] = LOOKS[judgement.verdict];
  return (
    <Badge tone={tone} icon={Icon}>
      {isNamed && `${metricName(judgement.gate)} `}
      {shortVerdict(judgement)}
    </Badge>
  );
}

/** The current verdicts of a canary; for other releases the number of gates. */
export function GateMarks({ release }: { readonly release: Release }) {
  const count = release.gates?.length ?? 0;
  if (count === 0) return <span className="dim">no gates</span>;
  if (release.state !== 'canary') return <span className="dim">{countOf(count, 'gate')}</span>;
  return <CurrentMarks id={release.id} count={count} />;
}

function CurrentMarks({ id, count }: { readonly id: string; readonly count: number }) {
  const { data, error } = useGateReport(id, true);
  if (data === undefined) {
    return <span className="dim">{error ? 'verdicts unknown' : countOf(count, 'gate')}</span>;
  }
  return (
    <ButtonRow>
      {data.gates.map((judgement) => (
        <span key={JSON.stringify(judgement.gate)} title={reasonOf(judgement, data)}>
          <VerdictBadge judgement={judgement} isNamed />
        </span>
      ))}
    </ButtonRow>
  );
}
