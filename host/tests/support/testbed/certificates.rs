//! What the servers and their clients know each other by, made anew for each control plane.

use std::fs;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

/// Writes into a folder: `ca.crt`, `apiserver.{crt,key}`, `admin.{crt,key}` of a member of `system:masters`,
/// and `accounts.{key,pub}`, which tokens of a `ServiceAccount` are signed with.
pub(super) fn write(folder: &Path) {
    let write = |name: &str, text: String| {
        fs::write(folder.join(name), text).expect("there is room for temporary files");
    };
    let key = || KeyPair::generate().expect("there are random numbers");

    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params
        .distinguished_name
        .push(DnType::CommonName, "testbed");
    let ca_key = key();
    let ca = params.self_signed(&ca_key).expect("it is well-formed");
    write("ca.crt", ca.pem());
    let issuer = Issuer::new(params, ca_key);

    let names = ["127.0.0.1", "localhost", "kubernetes.default.svc"].map(str::to_owned);
    let mut apiserver = CertificateParams::new(names).expect("these are names");
    apiserver
        .distinguished_name
        .push(DnType::CommonName, "kube-apiserver");
    apiserver.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];

    let mut admin = CertificateParams::default();
    admin.distinguished_name.push(DnType::CommonName, "admin");
    admin
        .distinguished_name
        .push(DnType::OrganizationName, "system:masters");
    admin.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];

    for (name, params) in [("apiserver", apiserver), ("admin", admin)] {
        let key = key();
        let signed = params.signed_by(&key, &issuer).expect("it is well-formed");
        write(&format!("{name}.crt"), signed.pem());
        write(&format!("{name}.key"), key.serialize_pem());
    }

    let accounts = key();
    write("accounts.key", accounts.serialize_pem());
    write("accounts.pub", accounts.public_key_pem());
}
