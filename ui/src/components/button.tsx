/** Buttons, and links that look like buttons. */

import type { ComponentProps, ReactNode } from 'react';
import { Link } from 'wouter';
import styles from './button.module.css';

export type ButtonKind = 'plain' | 'primary' | 'danger' | 'quiet';

interface ButtonProps extends Omit<ComponentProps<'button'>, 'type'> {
  readonly kind?: ButtonKind;
  readonly submits?: boolean;
  /** The action is running, and the button is disabled. */
  readonly isBusy?: boolean;
  readonly icon?: ReactNode;
}

export function Button(props: ButtonProps) {
  const { kind = 'plain', submits, isBusy, icon, children, disabled, className, ...rest } = props;
  return (
    <button
      type={submits ? 'submit' : 'button'}
      className={classOf(kind, className)}
      disabled={disabled || isBusy}
      aria-busy={isBusy}
      {...rest}
    >
      {icon}
      {children}
    </button>
  );
}

/** @param props.label the action, for screen readers and as a tooltip */
export function IconButton(props: Omit<ButtonProps, 'children'> & { readonly label: string }) {
  const { label, kind = 'quiet', ...rest } = props;
  return <Button kind={kind} className={styles.icon} aria-label={label} title={label} {...rest} />;
}

export function LinkButton(props: {
  readonly href: string;
  readonly kind?: ButtonKind;
  readonly icon?: ReactNode;
  readonly children: ReactNode;
}) {
  return (
    <Link href={props.href} className={classOf(props.kind ?? 'plain')}>
      {props.icon}
      {props.children}
    </Link>
  );
}

function classOf(kind: ButtonKind, more?: string): string {
  return [styles.button, kind === 'plain' ? undefined : styles[kind], more]
    .filter(Boolean)
    .join(' ');
}

/** Buttons and other small things side by side. */
export function ButtonRow({ children }: { readonly children: ReactNode }) {
  return <span className={styles.row}>{children}</span>;
}
