/** The steps of a release, each with the time it was reached. */

import type { ReleaseDecision, ReleaseState } from 'durable-workflow-engine-client';
import { Check, CircleDot, Minus, Pause, Undo2, X } from 'lucide-react';
import { Time } from '../../components/time.tsx';
import { wordsOf } from '../../lib/format.ts';
import { type Step, type StepMark, stepsOf } from './life.ts';
import { RELEASE_TONES } from './release-badge.tsx';
import styles from './releases.module.css';

const SAID: Readonly<Record<StepMark, string>> = {
  done: 'done',
  skipped: 'skipped',
  current: 'now',
  open: 'not yet',
};

export function Progress(props: {
  readonly state: ReleaseState;
  readonly decisions: readonly ReleaseDecision[];
}) {
  return (
    <ol className={styles.steps} aria-label="Steps">
      {stepsOf(props.state, props.decisions).map((step) => (
        <li
          key={step.state}
          className={`${styles.step} ${styles[step.mark]}`}
          data-tone={toneOf(step)}
          aria-current={step.mark === 'current' ? 'step' : undefined}
        >
          <span className={styles.dot}>
            <StepIcon step={step} />
          </span>
          <span className={styles.stepName}>{wordsOf(step.state)}</span>
          <span className="dim small">
            {step.mark === 'done' || step.mark === 'current' ? (
              <>
                <span className="hidden-text">{SAID[step.mark]}, </span>
                <Time at={step.at} />
              </>
            ) : (
              SAID[step.mark]
            )}
          </span>
        </li>
      ))}
    </ol>
  );
}

function toneOf({ state, mark }: Step) {
  if (mark === 'done') return 'ok';
  if (mark !== 'current') return undefined;
  const tone = RELEASE_TONES[state];
  return tone === 'idle' ? 'info' : tone;
}

function StepIcon({ step: { state, mark } }: { readonly step: Step }) {
  const size = 14;
  if (mark === 'open') return null;
  if (mark === 'skipped') return <Minus size={size} aria-hidden />;
  if (mark === 'done' || state === 'promoted') return <Check size={size} aria-hidden />;
  if (state === 'paused') return <Pause size={size} aria-hidden />;
  if (state === 'rolled_back') return <Undo2 size={size} aria-hidden />;
  if (state === 'failed') return <X size={size} aria-hidden />;
  return <CircleDot size={size} aria-hidden />;
}
