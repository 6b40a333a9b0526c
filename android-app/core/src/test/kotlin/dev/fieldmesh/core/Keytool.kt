package dev.fieldmesh.core

import dev.fieldmesh.core.agent.Identity
import java.io.File
import java.nio.file.Files
import java.security.KeyStore
import java.security.PrivateKey
import java.security.cert.X509Certificate
import java.util.Base64

private const val SECRET = "secret"

/** A P-256 key with a self-signed certificate, made by the JDK's keytool as the Android Keystore makes one. */
fun newKeyStore(name: String): KeyStore {
    val folder = Files.createTempDirectory("keys").toFile() // keytool makes the file itself, and takes no empty one
    val file = File(folder, "keys.p12")
    val process = ProcessBuilder(
        File(
            System.getProperty("java.home"),
            "bin/keytool",
        ).path,
        "-genkeypair", "-alias", name, "-keyalg", "EC", "-groupname", "secp256r1",
        "-dname", "CN=$name", "-validity", "3650", "-storetype", "PKCS12", "-keystore", file.path, "-storepass", SECRET,
    ).redirectErrorStream(true).start()
    val printed = process.inputStream.reader().readText()
    check(process.waitFor() == 0) { printed }
    return KeyStore.getInstance("PKCS12").apply { file.inputStream().use { load(it, SECRET.toCharArray()) } }
        .also { folder.deleteRecursively() }
}

fun newIdentity(name: String): Identity = newKeyStore(name).identity(name)

fun KeyStore.identity(name: String) =
    Identity(getCertificate(name) as X509Certificate, getKey(name, SECRET.toCharArray()) as PrivateKey)

/** Its certificate, as the agent keeps its own. */
val Identity.pem: String
    get() = "-----BEGIN CERTIFICATE-----\n${Base64.getMimeEncoder().encodeToString(certificate.encoded)}\n" +
        "-----END CERTIFICATE-----\n"
