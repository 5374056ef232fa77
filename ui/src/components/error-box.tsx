/** Shows an error with the engine's message, status, code and request id. */

import { EngineError } from 'durable-workflow-engine-client';
import { type LucideIcon, TriangleAlert } from 'lucide-react';
import type { ReactNode } from 'react';
import { ActionError } from '../api/outcome.ts';
import { Button } from './button.tsx';
import styles from './error-box.module.css';

export function ErrorBox(props: { readonly error: unknown; readonly onRetry?: () => void }) {
  const { error, onRetry } = props;
  const detail = detailOf(error);
  return (
    <div className={styles.box} role="alert">
      <TriangleAlert size={18} aria-hidden />
      <span className={styles.text}>{messageOf(error)}</span>
      {onRetry ? <Button onClick={onRetry}>Try again</Button> : <span />}
      {detail !== '' && <span className={styles.detail}>{detail}</span>}
    </div>
  );
}

export function messageOf(error: unknown): string {
  // Browsers do not tell why there was no answer; only a timeout is known to the client.
  if (error instanceof EngineError && error.status === 0 && error.code !== 'CLIENT_TIMEOUT') {
    return 'The engine is unreachable. This page reloads its data when the engine is back.';
  }
  return error instanceof Error ? error.message : String(error);
}

/** The message with the details, where there is only room for a text. */
export const errorText = (error: unknown) =>
  [messageOf(error), detailOf(error)].filter(Boolean).join(' · ');

function detailOf(error: unknown): string {
  if (error instanceof ActionError) return detailOf(error.cause);
  if (!(error instanceof EngineError)) return '';
  const { status, code, requestId } = error;
  return [status > 0 && `${status} ${code}`, requestId && `request ${requestId}`]
    .filter(Boolean)
    .join(' · ');
}

/** Shown for an empty list: why it is empty, and what to do next. */
export function Empty(props: {
  readonly title: string;
  readonly icon?: LucideIcon | undefined;
  readonly children?: ReactNode;
}) {
  const { icon: Icon } = props;
  return (
    <div className={styles.empty}>
      {Icon && <Icon size={26} aria-hidden />}
      <h2>{props.title}</h2>
      {props.children}
    </div>
  );
}
