-- PostgreSQL copies values of columns into its statistics. Sealed values must not stay there under an earlier key. The type does
-- not change: naming it again removes the statistics that exist.
alter table idempotency_key
  alter sealed_answer type bytea, alter sealed_answer set statistics 0;
alter table x402_payment
  alter sealed_payment type bytea, alter sealed_payment set statistics 0,
  alter sealed_request type bytea, alter sealed_request set statistics 0,
  alter sealed_answer type bytea, alter sealed_answer set statistics 0;
alter table webhook
  alter secret type bytea, alter secret set statistics 0,
  alter previous_secret type bytea, alter previous_secret set statistics 0;
alter table deployment
  alter seed type bytea, alter seed set statistics 0;
alter table host
  alter bmc_password type bytea, alter bmc_password set statistics 0;
alter table server
  alter root_password type bytea, alter root_password set statistics 0,
  alter user_data type bytea, alter user_data set statistics 0;
alter table manual_job
  alter spec type bytea, alter spec set statistics 0;
alter table totp
  alter seed type bytea, alter seed set statistics 0,
  alter recovery_codes type bytea, alter recovery_codes set statistics 0;
