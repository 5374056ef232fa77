/** Buttons, and links that look like buttons. */

import type { LucideIcon } from 'lucide-react';
import type { ComponentProps, ReactNode } from 'react';
import { Link } from 'wouter';
import styles from './button.module.css';

export type ButtonKind = 'plain' | 'primary' | 'danger' | 'quiet';

export interface ButtonProps extends Omit<ComponentProps<'button'>, 'type'> {
  readonly kind?: ButtonKind;
  readonly submits?: boolean;
  /** The action is running, and the button is disabled. */
  readonly isBusy?: boolean | undefined;
  readonly icon?: LucideIcon;
  /** Of the icon, in pixels. */
  readonly size?: number;
}

export function Button(props: ButtonProps) {
  const { kind = 'plain', submits, isBusy, disabled, className, ...others } = props;
  const { icon: Icon, size = 15, children, ...rest } = others;
  return (
    <button
      type={submits ? 'submit' : 'button'}
      className={classOf(kind, className)}
      disabled={disabled || isBusy}
      aria-busy={isBusy}
      {...rest}
    >
      {Icon && <Icon size={size} aria-hidden />}
      {children}
    </button>
  );
}

/** @param props.label the action, for screen readers and as a tooltip */
export function IconButton(props: Omit<ButtonProps, 'children'> & { readonly label: string }) {
  const { label, ...rest } = props;
  const own = { kind: 'quiet', size: 16, className: styles.icon, title: label } as const;
  return <Button {...own} aria-label={label} {...rest} />;
}

/** Switches something on and off. */
export function Toggle({ isOn, ...rest }: Omit<ButtonProps, 'kind'> & { readonly isOn: boolean }) {
  return <Button kind={isOn ? 'plain' : 'quiet'} aria-pressed={isOn} {...rest} />;
}

export function LinkButton(props: {
  readonly href: string;
  readonly kind?: ButtonKind;
  readonly icon?: LucideIcon;
  readonly children: ReactNode;
}) {
  const { href, kind = 'plain', icon: Icon, children } = props;
  return (
    <Link href={href} className={classOf(kind)}>
      {Icon && <Icon size={15} aria-hidden />}
      {children}
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
