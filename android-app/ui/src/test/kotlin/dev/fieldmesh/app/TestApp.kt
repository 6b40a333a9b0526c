package dev.fieldmesh.app

import dev.fieldmesh.core.agent.Identity
import dev.fieldmesh.core.newIdentity
import dev.fieldmesh.device.Pictures
import dev.fieldmesh.device.Shot
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.emptyFlow

/** The app with a key from the JDK's keytool: there is no Android Keystore on a desk. */
class TestApp : Fieldmesh() {
    /** What its camera sees. */
    var seen: Flow<Shot> = emptyFlow()
    override val pictures = Pictures { seen }
    override val worker = Dispatchers.Unconfined

    override fun identity(): Identity = key

    private companion object {
        val key: Identity by lazy { newIdentity("app") }
    }
}
