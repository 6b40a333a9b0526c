package dev.fieldmesh.app

import dev.fieldmesh.core.agent.Identity
import dev.fieldmesh.device.Pictures
import dev.fieldmesh.device.Shot
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.emptyFlow
import java.io.File
import java.nio.file.Files
import java.security.KeyStore
import java.security.PrivateKey
import java.security.cert.X509Certificate

/** The app with a key from the JDK's keytool: there is no Android Keystore on a desk. */
class TestApp : Fieldmesh() {
    /** What its camera sees. */
    var seen: Flow<Shot> = emptyFlow()
    override val pictures = Pictures { seen }
    override val worker = Dispatchers.Unconfined

    override fun identity(): Identity = key

    private companion object {
        val key: Identity by lazy {
            val file = File(Files.createTempDirectory("keys").toFile(), "keys.p12")
            val process = ProcessBuilder(
                File(
                    System.getProperty("java.home"),
                    "bin/keytool",
                ).path,
                "-genkeypair", "-alias", "app", "-keyalg", "EC", "-groupname", "secp256r1",
                "-dname", "CN=app", "-storetype", "PKCS12", "-keystore", file.path, "-storepass", "secret",
            ).redirectErrorStream(true).start()
            val printed = process.inputStream.reader().readText()
            check(process.waitFor() == 0) { printed }
            val store = KeyStore.getInstance("PKCS12").apply {
                file.inputStream().use { load(it, "secret".toCharArray()) }
            }
            file.delete()
            Identity(
                store.getCertificate("app") as X509Certificate,
                store.getKey("app", "secret".toCharArray()) as PrivateKey,
            )
        }
    }
}
