/** The findings about a definition, each with a link to its position in the text. */

import { CircleCheck, CircleX, LoaderCircle, TriangleAlert } from 'lucide-react';
import { useChunk } from '../../components/chunk.tsx';
import { countOf } from '../../lib/format.ts';
import type { Finding, Verdict } from './findings.ts';
import styles from './sequences.module.css';

/**
 * @param props.doubt why the text is not a JSON object that can be sent; undefined if it is one
 * @param props.verdict undefined until the engine has answered
 */
export function FindingList(props: {
  readonly doubt: string | undefined;
  readonly verdict: Verdict | undefined;
  readonly onChoose: (finding: Finding) => void;
}) {
  const { doubt, verdict, onChoose } = props;
  const [shown, more] = useChunk(verdict?.findings.length ?? 0);
  return (
    <div className={styles.footer}>
      <p className={styles.status} role="status">
        <Standing doubt={doubt} verdict={verdict} />
      </p>
      {doubt === undefined && verdict && verdict.findings.length > 0 && (
        <ul className={styles.findings} aria-label="Findings">
          {verdict.findings.slice(0, shown).map((finding) => (
            <li key={`${finding.path} ${finding.message}`}>
              <button type="button" className={styles.finding} onClick={() => onChoose(finding)}>
                <SeverityIcon severity={finding.severity} />
                <span>
                  {finding.path !== '' && <code>{finding.path}</code>} {finding.message}
                </span>
              </button>
            </li>
          ))}
          {more && <li>{more}</li>}
        </ul>
      )}
    </div>
  );
}

function Standing(props: {
  readonly doubt: string | undefined;
  readonly verdict: Verdict | undefined;
}) {
  const { doubt, verdict } = props;
  if (doubt !== undefined) {
    return (
      <>
        <SeverityIcon severity="error" /> {doubt}
      </>
    );
  }
  if (verdict === undefined) {
    return (
      <>
        <LoaderCircle size={16} aria-hidden /> Checking
      </>
    );
  }
  const { isValid, findings } = verdict;
  const errors = findings.filter(({ severity }) => severity === 'error').length;
  const warnings = countOf(findings.length - errors, 'warning');
  const rest = findings.length === errors ? '' : ` ${warnings}.`;
  if (!isValid) {
    return (
      <>
        <SeverityIcon severity="error" /> It cannot be published: {countOf(errors, 'error')}.{rest}
      </>
    );
  }
  return (
    <>
      <CircleCheck size={16} className={styles.valid} aria-hidden /> It can be published.{rest}
    </>
  );
}

function SeverityIcon({ severity }: { readonly severity: Finding['severity'] }) {
  const Icon = severity === 'error' ? CircleX : TriangleAlert;
  return <Icon size={16} className={styles[severity]} aria-label={severity} role="img" />;
}
