package dev.fieldmesh.core.agent

import java.net.Socket
import java.security.MessageDigest
import java.security.Principal
import java.security.PrivateKey
import java.security.cert.CertificateException
import java.security.cert.X509Certificate
import javax.net.ssl.KeyManager
import javax.net.ssl.SSLContext
import javax.net.ssl.SSLEngine
import javax.net.ssl.X509ExtendedKeyManager
import javax.net.ssl.X509TrustManager

private val PIN_FORM = Regex("[0-9a-f]{64}")

/**
 * The SHA-256 of a key's SubjectPublicKeyInfo in lower-case hexadecimal. A peer
 * is known by it and by nothing else: no authority, name or date is looked at,
 * because a phone's clock may be wrong.
 */
@JvmInline
value class Pin(val hex: String) {
    init {
        require(PIN_FORM.matches(hex)) { "a pin is 64 lower-case hexadecimal digits" }
    }

    companion object {
        fun of(certificate: X509Certificate): Pin {
            val sum = MessageDigest.getInstance("SHA-256").digest(certificate.publicKey.encoded)
            return Pin(sum.joinToString("") { "%02x".format(it) })
        }
    }
}

/** The node showed another key than the one that the app was paired with. */
class WrongKeyException(message: String) : CertificateException(message)

/** The app's own key: P-256, in the Android Keystore on a phone. The private half may be opaque. */
class Identity(val certificate: X509Certificate, val privateKey: PrivateKey) {
    val pin: Pin get() = Pin.of(certificate)
}

/** Admits the one server that has the pinned key. */
class PinnedTrust(private val want: Pin) : X509TrustManager {
    override fun checkServerTrusted(chain: Array<X509Certificate>, authType: String) {
        // The first certificate is the one whose key signed the handshake (RFC 8446, section 4.4.3).
        val got = Pin.of(chain.firstOrNull() ?: throw CertificateException("the node shows no certificate"))
        if (got !=
            want
        ) {
            throw WrongKeyException("the node shows key ${got.hex.take(12)}…, paired is ${want.hex.take(12)}…")
        }
    }

    override fun checkClientTrusted(chain: Array<X509Certificate>, authType: String) =
        throw CertificateException("the app serves nobody")

    override fun getAcceptedIssuers(): Array<X509Certificate> = emptyArray()
}

/** Shows the one identity to whoever asks, whatever authorities the node names. */
private class OneIdentity(private val identity: Identity) : X509ExtendedKeyManager() {
    override fun chooseClientAlias(types: Array<String>?, issuers: Array<Principal>?, socket: Socket?) = ALIAS
    override fun chooseEngineClientAlias(types: Array<String>?, issuers: Array<Principal>?, engine: SSLEngine?) = ALIAS
    override fun getClientAliases(type: String?, issuers: Array<Principal>?) = arrayOf(ALIAS)
    override fun getCertificateChain(alias: String?) = arrayOf(identity.certificate)
    override fun getPrivateKey(alias: String?) = identity.privateKey
    override fun chooseServerAlias(type: String?, issuers: Array<Principal>?, socket: Socket?): String? = null
    override fun getServerAliases(type: String?, issuers: Array<Principal>?): Array<String>? = null

    private companion object {
        const val ALIAS = "app"
    }
}

/** TLS with [identity] on this side; who may be on the other is [trust]'s to say. */
fun tlsContext(identity: Identity, trust: X509TrustManager): SSLContext = SSLContext.getInstance("TLS").apply {
    init(arrayOf<KeyManager>(OneIdentity(identity)), arrayOf(trust), null)
}
